//! A server that listens, and a client that says exactly what a test wants it to say.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::log::Log;
use super::message::read;
use super::{DEADLINE, Folder, Toolbay};

pub(crate) const MODERN: &str = "2026-07-28";

/// The value of a header that is to be left out, where it would be there by itself.
const LEFT_OUT: &str = "-";

/// A running `toolbay serve --http`. Dropped, it is asked to end, and must end well.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    folder: Folder,
}

/// A response whose body has not been read yet.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    chunked: bool,
    length: Option<usize>,
    /// What of the stream of events has come.
    text: String,
}

/// A session by the rules of `revision`, as a client has it.
pub(crate) struct HttpSession<'a> {
    server: &'a HttpServer,
    pub(crate) id: String,
    revision: String,
    /// Headers of every request, such as a token.
    more: Vec<(String, String)>,
    next_id: std::cell::Cell<u64>,
}

impl HttpServer {
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::configured(folder, "")
    }

    /// With a configuration file.
    pub(crate) fn configured(folder: &Folder, config: &str) -> Self {
        std::fs::write(folder.beside("toolbay.toml"), config).unwrap();
        Self::run(Toolbay::new(folder).args(["serve", "--http", "127.0.0.1:0"]))
    }

    /// `command` must listen.
    pub(crate) fn run(command: Toolbay) -> Self {
        let (mut command, folder) = command.into_parts();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Log::follow(child.stderr.take().unwrap());
        let line = log.wait_for("listening on http://");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
        Self { child, address: address.parse().unwrap(), log, folder }
    }

    /// Waits until the plugins that were there at start are loaded.
    pub(crate) fn ready(self) -> Self {
        let begun = std::time::Instant::now();
        while self.get("/readyz", &[]).status != 200 {
            assert!(begun.elapsed() < DEADLINE, "it is not ready:\n{}", self.log.text());
            std::thread::yield_now();
        }
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request, with these headers and `Host` where they have none.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let _ = write!(head, "Host: {}\r\n", self.address);
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != LEFT_OUT) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if method == "POST" {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        self.raw([head.as_bytes(), b"\r\n", body].concat())
    }

    /// Sends bytes as they are, and reads the head of the response.
    pub(crate) fn raw(&self, bytes: impl AsRef<[u8]>) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // A server that has refused already may have closed its end.
        drop(stream.write_all(bytes.as_ref()));
        Response::read(stream)
    }

    /// Sends bytes, and closes the connection before anything comes back.
    pub(crate) fn send_and_hang_up(&self, bytes: impl AsRef<[u8]>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.request("GET", path, headers, b"")
    }

    /// Posts to `/mcp`, with what every POST must have and these headers.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let own = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let usual = usual.into_iter().filter(|(name, _)| !own(name));
        let all: Vec<(&str, &str)> = usual.chain(headers.iter().copied()).collect();
        self.request("POST", "/mcp", &all, body)
    }

    /// Posts a stateless request with the headers that belong to it, and these.
    pub(crate) fn modern(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> Response {
        let name = params["name"].as_str().map(ToOwned::to_owned);
        let body = modern(json!(1), method, params);
        let mut all = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        if let Some(name) = &name {
            all.push(("Mcp-Name", name));
        }
        all.retain(|(name, _)| !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        all.extend(headers);
        self.post(&all, body.to_string().as_bytes())
    }

    /// The result of a stateless request.
    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        let response = self.modern(method, params, &[]);
        assert_eq!(response.status, 200, "{method}");
        let mut answer = response.answer();
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Begins a session, and says that it is ready.
    pub(crate) fn session(&self, revision: &str) -> HttpSession<'_> {
        self.session_with(revision, &[])
    }

    /// The same, with more headers.
    pub(crate) fn session_with(&self, revision: &str, headers: &[(&str, &str)]) -> HttpSession<'_> {
        let response = self.post(headers, initialize(revision).to_string().as_bytes());
        assert_eq!(response.status, 200);
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let answer = response.answer();
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        let more = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let session = HttpSession { server: self, id, revision: revision.to_owned(), more, next_id: 1.into() };
        let response = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!((response.status, response.text()), (202, String::new()));
        session
    }

    /// Asks the server to end, and waits for that.
    pub(crate) fn end(&mut self) -> Option<i32> {
        assert!(Command::new("kill").arg(self.pid().to_string()).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.child.kill());
            drop(self.child.wait());
        } else if let Ok(None) = self.child.try_wait() {
            let code = self.end();
            assert_eq!(code, Some(0), "the server did not end well; the log:\n{}", self.log.text());
        }
    }
}

/// `initialize` as a message.
pub(crate) fn initialize(revision: &str) -> Value {
    let client = json!({"name": "tests", "version": "0"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A request of a stateless revision as a message.
pub(crate) fn modern(id: Value, method: &str, mut params: Value) -> Value {
    let stated = [("protocolVersion", json!(MODERN)), ("clientCapabilities", json!({}))];
    for (key, value) in stated {
        let key = format!("io.modelcontextprotocol/{key}");
        if params["_meta"].get(&key).is_none() {
            params["_meta"][key] = value;
        }
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

impl HttpSession<'_> {
    /// Posts a message of the session.
    pub(crate) fn post(&self, message: &Value) -> Response {
        self.server.post(&self.headers(), message.to_string().as_bytes())
    }

    /// The headers that every request of the session has.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![("Mcp-Session-Id", self.id.as_str())];
        if self.revision.as_str() >= "2025-06-18" {
            headers.push(("MCP-Protocol-Version", &self.revision));
        }
        headers.extend(self.more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        headers
    }

    /// Posts a request.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Response {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// The result of a request.
    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params);
        assert_eq!(response.status, 200);
        let mut answer = response.answer();
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Opens the stream for what answers no request.
    pub(crate) fn stream(&self) -> Response {
        let response = self.server.get("/mcp", &[self.headers(), vec![("Accept", "text/event-stream")]].concat());
        assert_eq!(response.status, 200);
        response
    }

    /// The names of all tools.
    pub(crate) fn names(&self) -> Vec<String> {
        let result = self.result("tools/list", json!({}));
        result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Response {
    fn read(stream: TcpStream) -> Self {
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
        let mut response = Self { status, headers, reader, chunked: false, length: None, text: String::new() };
        response.chunked = response.header("transfer-encoding") == Some("chunked");
        response.length = response.header("content-length").map(|length| length.parse().unwrap());
        response
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Whether the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The whole body.
    pub(crate) fn text(mut self) -> String {
        if self.chunked {
            while self.chunk() {}
            return self.text;
        }
        let mut bytes = vec![0; self.length.unwrap_or_default()];
        self.reader.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// The message that answers the request, however it comes.
    pub(crate) fn answer(self) -> Value {
        self.messages().pop_back().expect("an answer")
    }

    /// Every message of the response, to its end.
    pub(crate) fn messages(mut self) -> VecDeque<Value> {
        if !self.is_stream() {
            return [read(&self.text())].into();
        }
        let mut messages = VecDeque::new();
        while let Some(message) = self.next() {
            messages.push_back(message);
        }
        messages
    }

    /// The next message of a stream; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            let (kind, data) = self.event()?;
            if kind == "message" {
                return Some(read(&data));
            }
            assert_eq!((kind.as_str(), data.as_str()), ("", ""), "an event of another kind");
        }
    }

    /// The next event of a stream, by its kind and its data; a comment has neither.
    pub(crate) fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim_start().to_owned()
                };
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
    pub(crate) fn hang_up(self) {
        drop(self);
    }
}
