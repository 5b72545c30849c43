//! A local HTTP server that stands for the API of a client.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use toolbay_testkit::read_request;

use super::row::ApiAnswer;

/// The response to a request that no answer is for.
const UNKNOWN: &str = "{\"message\": \"not found\"}";

/// A server with fixed answers. It serves until the process ends.
pub(super) struct ApiServer {
    url: String,
    state: Arc<ApiServerState>,
}

#[derive(Default)]
struct ApiServerState {
    answers: Vec<ApiAnswer>,
    /// Requests: the method, the target and the body.
    requests: Mutex<Vec<String>>,
}

impl ApiServer {
    /// Starts a server on a free port of the loopback interface.
    pub(super) fn start(answers: &[ApiAnswer]) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("failed to listen")?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(ApiServerState {
            answers: answers.to_vec(),
            requests: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that closes its connection early is not an error.
                thread::spawn(move || drop(state.serve(stream)));
            }
        });
        Ok(Self { url, state })
    }

    /// Returns the URL of the API, without a path.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns and forgets the received requests, in the order of their text, because clients send
    /// some of them at the same time.
    pub(super) fn take_requests(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.state.requests.lock());
        requests.sort();
        requests
    }
}

impl ApiServerState {
    /// Answers the requests of a connection until its end.
    fn serve(&self, stream: TcpStream) -> Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some((head, body)) = read_request(&mut reader)? {
            let line = head.lines().next().unwrap_or_default();
            let mut words = line.split(' ');
            let (method, target) = (
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
            );
            let body = String::from_utf8_lossy(&body);
            self.requests
                .lock()
                .push(format!("{method} {target} {body}").trim_end().to_owned());
            stream.write_all(self.response(method, target).as_bytes())?;
        }
        Ok(())
    }

    fn response(&self, method: &str, target: &str) -> String {
        let path = target.split('?').next().unwrap_or_default();
        let answer = self
            .answers
            .iter()
            .find(|answer| answer.method == method && answer.path == path);
        let (status, body) = answer.map_or(("404 Not Found", UNKNOWN), |answer| {
            ("200 OK", answer.body.as_str())
        });
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
        let headers = answer.map(|answer| &answer.headers);
        for (name, value) in headers.into_iter().flatten() {
            head.extend([
                name.as_str(),
                ": ",
                value.as_str().unwrap_or_default(),
                "\r\n",
            ]);
        }
        if !head.to_ascii_lowercase().contains("\r\ncontent-type:") {
            head += "Content-Type: application/json\r\n";
        }
        format!("{head}\r\n{body}")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn exchange(server: &ApiServer, requests: &str) -> String {
        let address = server.url().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(requests.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_are_answered_and_recorded() {
        let answer: ApiAnswer = toml::from_str(
            "method = \"POST\"\npath = \"/a\"\nbody = \"ok\"\nheaders = { Content-Type = \"text/plain\", X-A = \"b\" }",
        )
        .unwrap();
        let server = ApiServer::start(&[answer]).unwrap();
        let text = exchange(
            &server,
            "POST /a?b=c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\nGET /a HTTP/1.1\r\n\r\n",
        );
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nX-A: b\r\n\r\nok\
             HTTP/1.1 404 Not Found\r\nContent-Length: 24\r\nContent-Type: application/json\r\n\r\n{\"message\": \"not found\"}"
        );
        assert_eq!(server.take_requests(), ["GET /a", "POST /a?b=c hi!"]);
        assert!(server.take_requests().is_empty());
    }
}
