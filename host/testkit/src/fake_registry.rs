//! A registry for tests, which misbehaves on request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use crate::http::read_request;

/// A registry that serves recorded answers over http on a loopback address.
#[derive(Clone, Debug)]
pub struct FakeRegistry {
    address: String,
    state: Arc<Mutex<RegistryState>>,
}

#[derive(Debug, Default)]
struct RegistryState {
    /// The answers, by method and path. The last one of a list is repeated.
    answers: BTreeMap<String, Vec<FakeAnswer>>,
    /// The heads of all requests.
    requests: Vec<String>,
    /// The bodies of requests that have one, by method and path.
    bodies: BTreeMap<String, Vec<u8>>,
}

/// An answer of a [`FakeRegistry`].
#[derive(Clone, Debug, Default)]
pub struct FakeAnswer {
    /// The status, such as `200 OK`.
    status: String,
    /// Header lines.
    headers: String,
    body: Vec<u8>,
    /// The number of bytes of the body after which the connection is closed.
    cut: Option<usize>,
    /// True if nothing is sent, and the connection stays open until the client closes it.
    is_silent: bool,
    /// True if the part of the body is sent that the header `Range` asks for.
    has_ranges: bool,
}

impl FakeAnswer {
    /// Creates an answer.
    pub fn new(status: &str, body: impl AsRef<[u8]>) -> Self {
        Self {
            status: status.to_owned(),
            body: body.as_ref().to_vec(),
            ..Self::default()
        }
    }

    /// Creates an answer with status 200.
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new("200 OK", body)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.headers, "{name}: {value}\r\n");
        self
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// Sends the part of the body that a client asks for.
    #[must_use]
    pub fn with_ranges(mut self) -> Self {
        self.has_ranges = true;
        self
    }

    /// Creates an answer that never comes.
    pub fn silence() -> Self {
        Self {
            is_silent: true,
            ..Self::default()
        }
    }
}

impl FakeRegistry {
    /// Starts a registry that has nothing: each request gets status 404.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let registry = Self {
            address: listener.local_addr()?.to_string(),
            state: Arc::default(),
        };
        let serving = registry.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), registry) = (stream, serving.clone()) else {
                    return;
                };
                // A client that goes away is no error of the registry.
                thread::spawn(move || drop(registry.serve(&stream)));
            }
        });
        Ok(registry)
    }

    /// Returns its address, such as `127.0.0.1:5000`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sets the answers to requests with this method and path, such as `GET /v2/`. The last one is
    /// repeated.
    pub fn answer(&self, request: &str, answers: Vec<FakeAnswer>) {
        self.state
            .lock()
            .answers
            .insert(request.to_owned(), answers);
    }

    /// Returns the heads of the requests since the last time: request lines and headers.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().requests)
    }

    /// Returns the last body that was sent with this method and path.
    pub fn received(&self, request: &str) -> Option<Vec<u8>> {
        self.state.lock().bodies.get(request).cloned()
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some((head, body)) = read_request(&mut reader)? {
            let line = head.lines().next().unwrap_or_default();
            let mut words = line.split(' ');
            let (method, target) = (words.next(), words.next());
            let path = target.unwrap_or_default().split('?').next();
            let key = format!(
                "{} {}",
                method.unwrap_or_default(),
                path.unwrap_or_default()
            );
            let answer = {
                let mut state = self.state.lock();
                state.requests.push(head.clone());
                if !body.is_empty() {
                    state.bodies.insert(key.clone(), body);
                }
                match state.answers.get_mut(&key) {
                    Some(answers) if answers.len() > 1 => Some(answers.remove(0)),
                    Some(answers) => answers.first().cloned(),
                    None => None,
                }
            };
            let answer = answer.unwrap_or_else(|| FakeAnswer::new("404 Not Found", "{}"));
            if answer.is_silent {
                // Returns when the client closes the connection.
                let _ended = read_request(&mut reader)?;
                return Ok(());
            }
            let is_head = method == Some("HEAD");
            if !answer.send(stream, range_begin(&head), is_head)? {
                return stream.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }
}

impl FakeAnswer {
    /// Sends the answer. Returns false if the connection ends with it.
    fn send(
        &self,
        mut stream: &TcpStream,
        begin: Option<usize>,
        is_head: bool,
    ) -> io::Result<bool> {
        let whole = self.body.len();
        let begin = begin.filter(|begin| self.has_ranges && *begin < whole);
        let body = self.body.get(begin.unwrap_or(0)..).unwrap_or_default();
        let (status, range) = match begin {
            Some(begin) => (
                "206 Partial Content",
                format!("Content-Range: bytes {begin}-{}/{whole}\r\n", whole - 1),
            ),
            None => (self.status.as_str(), String::new()),
        };
        // A test can declare another length.
        let length = if self
            .headers
            .to_ascii_lowercase()
            .contains("content-length:")
        {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        let head = format!("HTTP/1.1 {status}\r\n{}{range}{length}\r\n", self.headers);
        stream.write_all(head.as_bytes())?;
        if is_head {
            return Ok(true);
        }
        let end = self.cut.unwrap_or(body.len()).min(body.len());
        stream.write_all(body.get(..end).unwrap_or_default())?;
        Ok(self.cut.is_none())
    }
}

/// Returns the first byte that the header `Range` asks for.
fn range_begin(head: &str) -> Option<usize> {
    let mut lines = head.lines();
    let value = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("range").then_some(value.trim())
    })?;
    value
        .strip_prefix("bytes=")?
        .split('-')
        .next()?
        .parse()
        .ok()
}
