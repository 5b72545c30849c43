//! A server over HTTP, and a client that sends exactly the bytes and headers that a test specifies.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking, as the types say; `Listener` is for everybody else"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes values to give away"
)]

mod request;
mod response;
mod server_process;
mod session;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

pub use self::request::read_request;
pub use self::response::HttpResponse;
pub use self::server_process::HttpServerProcess;
pub use self::session::HttpSession;
use crate::log::ProgramLog;
use crate::message;
use crate::{DEADLINE, TestFolder, ToolbayCommand, revision};

/// The header value that omits a header.
const OMIT_HEADER: &str = "-";

/// A running `toolbay serve --http`. Dropping it terminates the server and checks that the exit
/// code is 0.
///
/// # Panics
///
/// Every method panics if the server does not respond as expected within [`DEADLINE`].
#[derive(Debug)]
pub struct HttpServer {
    listener: HttpServerProcess,
    /// The server's address.
    pub address: SocketAddr,
    /// The server's log.
    pub log: ProgramLog,
    folder: TestFolder,
}

impl HttpServer {
    /// Starts a server on the folder.
    pub fn start(folder: &TestFolder) -> Self {
        Self::start_with_config(folder, "")
    }

    /// Starts a server on the folder with a configuration file.
    pub fn start_with_config(folder: &TestFolder, config: &str) -> Self {
        folder.write_config(config);
        Self::run(ToolbayCommand::new(folder).args(["serve", "--http", "127.0.0.1:0"]))
    }

    /// Runs `command`, which must listen on HTTP.
    pub fn run(command: ToolbayCommand) -> Self {
        let (command, folder) = command.into_parts();
        let listener =
            HttpServerProcess::start(command).unwrap_or_else(|error| panic!("{error:#}"));
        Self {
            address: listener.address,
            log: listener.log.clone(),
            listener,
            folder,
        }
    }

    /// Waits until the plugins that existed at startup are loaded.
    #[must_use]
    pub fn wait_until_ready(self) -> Self {
        let begun = std::time::Instant::now();
        while self.get("/readyz", &[]).status != 200 {
            assert!(
                begun.elapsed() < DEADLINE,
                "it is not ready:\n{}",
                self.log.text()
            );
            std::thread::yield_now();
        }
        self
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.listener.process.pid()
    }

    /// Sends a request with these headers. Adds `Host` if it is missing.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> HttpResponse {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            let _ = write!(head, "Host: {}\r\n", self.address);
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != OMIT_HEADER) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if method == "POST" {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        self.send_raw([head.as_bytes(), b"\r\n", body].concat())
    }

    /// Sends bytes unchanged on a new connection and reads the head of the response.
    pub fn send_raw(&self, bytes: impl AsRef<[u8]>) -> HttpResponse {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // A server that has already rejected the request may have closed the connection.
        drop(stream.write_all(bytes.as_ref()));
        HttpResponse::read(stream)
    }

    /// Sends bytes and closes the connection before a response arrives.
    pub fn send_and_close(&self, bytes: impl AsRef<[u8]>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        self.request("GET", path, headers, b"")
    }

    /// Sends a POST request to `/mcp` with `headers`. Adds the headers that every POST request must
    /// have.
    pub fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        let usual = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let own = |name: &str| {
            headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        let usual = usual.into_iter().filter(|(name, _)| !own(name));
        let all: Vec<(&str, &str)> = usual.chain(headers.iter().copied()).collect();
        self.request("POST", "/mcp", &all, body)
    }

    /// Sends a request of the first stateless revision with `headers`. Adds the headers that the
    /// revision requires.
    pub fn post_stateless(
        &self,
        method: &str,
        params: Value,
        headers: &[(&str, &str)],
    ) -> HttpResponse {
        self.post_stateless_in(revision::FIRST_STATELESS_REVISION, method, params, headers)
    }

    /// Like [`post_stateless`](Self::post_stateless), for any stateless revision.
    pub fn post_stateless_in(
        &self,
        revision: &str,
        method: &str,
        params: Value,
        headers: &[(&str, &str)],
    ) -> HttpResponse {
        // The name of a tool or prompt, or the URI of a resource.
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .map(ToOwned::to_owned);
        let body = message::stateless_request(revision, 1, method, params);
        let mut all = vec![("MCP-Protocol-Version", revision), ("Mcp-Method", method)];
        if let Some(name) = &name {
            all.push(("Mcp-Name", name));
        }
        all.retain(|(name, _)| {
            !headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        });
        all.extend(headers);
        self.post(&all, body.to_string().as_bytes())
    }

    /// Sends a request of the first stateless revision and returns the result.
    pub fn result(&self, method: &str, params: Value) -> Value {
        let response = self.post_stateless(method, params, &[]);
        assert_eq!(response.status, 200, "{method}");
        let mut answer = response.response_message();
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Terminates the server with SIGTERM and waits until it has exited. Returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.listener.process.terminate().unwrap();
        let ended = self.listener.process.wait_for_exit(DEADLINE);
        ended
            .unwrap_or_else(|error| panic!("{error:#}; the log:\n{}", self.log.text()))
            .code()
    }

    /// Returns the server's working folder.
    pub fn folder(&self) -> &TestFolder {
        &self.folder
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // If the test has failed, the process is killed.
        if !std::thread::panicking() && !self.listener.process.has_exited().unwrap() {
            let code = self.stop();
            assert_eq!(
                code,
                Some(0),
                "the server did not end well; the log:\n{}",
                self.log.text()
            );
        }
    }
}
