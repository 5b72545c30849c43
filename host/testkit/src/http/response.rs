//! An HTTP response, unprocessed.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::message;

/// A response whose body has not been read.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    chunked: bool,
    length: Option<usize>,
    /// The part of the event stream that has arrived.
    text: String,
    /// The id of the last event that had one.
    pub id: Option<String>,
}

impl Response {
    /// Reads the head of the response that arrives on a connection.
    pub fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).unwrap_or("0").parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response =
            Self { status, headers, reader, chunked: false, length: None, text: String::new(), id: None };
        response.chunked = response.header("transfer-encoding") == Some("chunked");
        response.length = response.header("content-length").map(|length| length.parse().unwrap());
        response
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Whether the body is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The whole body.
    pub fn text(mut self) -> String {
        if self.chunked {
            while self.chunk() {}
            return self.text;
        }
        let mut bytes = vec![0; self.length.unwrap_or_default()];
        self.reader.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The body as JSON.
    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// The message that responds to the request, from either kind of body.
    pub fn answer(self) -> Value {
        self.messages().pop_back().unwrap()
    }

    /// Every message of the response, up to its end.
    pub fn messages(mut self) -> VecDeque<Value> {
        if !self.is_stream() {
            return [self::read(self.text().as_bytes())].into();
        }
        let mut messages = VecDeque::new();
        while let Some(message) = self.next() {
            messages.push_back(message);
        }
        messages
    }

    /// The next message of a stream; `None` at its end.
    #[allow(clippy::should_implement_trait, reason = "what comes later can be read in other ways")]
    pub fn next(&mut self) -> Option<Value> {
        loop {
            let (kind, data) = self.event()?;
            if kind == "message" {
                return Some(self::read(data.as_bytes()));
            }
            assert_eq!((kind.as_str(), data.as_str()), ("", ""), "an event of another kind");
        }
    }

    /// The next event of a stream: its kind and its data. A comment has neither.
    pub fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim_start().to_owned()
                };
                self.id = Some(field("id:")).filter(|id| !id.is_empty()).or(self.id.take());
                return Some((field("event:"), field("data:")));
            }
            if !self.chunk() {
                return None;
            }
        }
    }

    /// Reads one chunk; false at the end.
    fn chunk(&mut self) -> bool {
        let mut line = String::new();
        if self.reader.read_line(&mut line).unwrap_or_else(|error| panic!("nothing comes: {error}")) == 0 {
            return false;
        }
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        self.text += std::str::from_utf8(&bytes[..length]).unwrap();
        length > 0
    }

    /// Closes the connection.
    pub fn hang_up(self) {
        drop(self);
    }
}

/// A message from the server, which must be valid.
fn read(text: &[u8]) -> Value {
    message::read(text).unwrap_or_else(|error| panic!("{error:#}"))
}
