//! HTTP responses whose body is read on demand.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::message;

/// A response whose head has been read and whose body has not.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    chunked: bool,
    length: Option<usize>,
    /// The text of the body that has been read and not yet been parsed.
    buffer: String,
    /// The id of the last event that had one.
    pub last_event_id: Option<String>,
}

impl HttpResponse {
    /// Reads the head of the response from a connection.
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
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Self {
            status,
            headers,
            reader,
            chunked: false,
            length: None,
            buffer: String::new(),
            last_event_id: None,
        };
        response.chunked = response.header("transfer-encoding") == Some("chunked");
        response.length = response
            .header("content-length")
            .map(|length| length.parse().unwrap());
        response
    }

    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Reads the whole body.
    pub fn text(mut self) -> String {
        if self.chunked {
            while self.read_chunk() {}
            return self.buffer;
        }
        let mut bytes = vec![0; self.length.unwrap_or_default()];
        self.reader.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads the whole body as JSON.
    pub fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// Reads the whole body, JSON or an event stream, and returns the last message, which is the
    /// response.
    pub fn response_message(self) -> Value {
        self.messages().pop_back().unwrap()
    }

    /// Reads all messages of the response, up to its end.
    pub fn messages(mut self) -> VecDeque<Value> {
        if !self.is_stream() {
            return [self::read(self.text().as_bytes())].into();
        }
        let mut messages = VecDeque::new();
        while let Some(message) = self.next_message() {
            messages.push_back(message);
        }
        messages
    }

    /// Reads the next message of an event stream. Returns `None` at the end.
    #[allow(
        clippy::should_implement_trait,
        reason = "what comes later can be read in other ways"
    )]
    pub fn next_message(&mut self) -> Option<Value> {
        loop {
            let (kind, data) = self.next_event()?;
            if kind == "message" {
                return Some(self::read(data.as_bytes()));
            }
            assert_eq!(
                (kind.as_str(), data.as_str()),
                ("", ""),
                "an event of another kind"
            );
        }
    }

    /// Reads the next event of an event stream and returns its type and data. Both are empty for a
    /// comment. Returns `None` at the end.
    pub fn next_event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let event: String = self.buffer.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim_start().to_owned()
                };
                self.last_event_id = Some(field("id:"))
                    .filter(|id| !id.is_empty())
                    .or(self.last_event_id.take());
                return Some((field("event:"), field("data:")));
            }
            if !self.read_chunk() {
                return None;
            }
        }
    }

    /// Reads one chunk. Returns false at the end.
    fn read_chunk(&mut self) -> bool {
        let mut line = String::new();
        if self
            .reader
            .read_line(&mut line)
            .unwrap_or_else(|error| panic!("nothing comes: {error}"))
            == 0
        {
            return false;
        }
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        self.buffer += std::str::from_utf8(&bytes[..length]).unwrap();
        length > 0
    }

    /// Closes the connection.
    pub fn close(self) {
        drop(self);
    }
}

/// Parses a message from the server. Panics if it is invalid.
fn read(text: &[u8]) -> Value {
    message::parse_line(text).unwrap_or_else(|error| panic!("{error:#}"))
}
