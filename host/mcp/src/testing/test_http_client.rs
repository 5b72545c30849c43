//! A client for tests, which sends requests over HTTP to a server with the stub host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::protocol::revision::Revision;
use crate::testing::stub_host::StubServer;
use crate::transport::http::{self, HttpOptions};

/// Timeout for a message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client, and the server that it connects to.
pub(crate) struct TestHttpClient {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

/// A response.
pub(crate) struct ClientHttpResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

/// A stream of events.
pub(crate) struct EventStream {
    stream: TcpStream,
    /// Text that was read but not consumed yet.
    text: String,
}

impl TestHttpClient {
    /// Starts a server with this host, and creates a client of it.
    pub(crate) async fn new(host: Arc<StubServer>, options: HttpOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move {
            http::serve(
                host.server(),
                options,
                listener,
                &http::SharedAccess::default(),
                stopped,
            )
            .await
        });
        Self {
            address,
            stop,
            serving,
        }
    }

    /// Stops the server.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }

    /// Returns the response to a POST. Each of `headers` ends with a line break.
    pub(crate) async fn post(&self, headers: &str, body: &Value) -> ClientHttpResponse {
        self.exchange("POST", headers, &body.to_string()).await
    }

    /// Returns the response to a request.
    pub(crate) async fn exchange(
        &self,
        verb: &str,
        headers: &str,
        body: &str,
    ) -> ClientHttpResponse {
        self.exchange_at(http::MCP_PATH, verb, headers, body).await
    }

    /// Returns the response to a request to this path.
    pub(crate) async fn exchange_at(
        &self,
        path: &str,
        verb: &str,
        headers: &str,
        body: &str,
    ) -> ClientHttpResponse {
        let mut stream = self
            .connect(path, verb, &format!("Connection: close\r\n{headers}"), body)
            .await;
        let mut answer = String::new();
        let reading = tokio::time::timeout(MESSAGE_TIMEOUT, stream.read_to_string(&mut answer));
        reading.await.expect("a response in time").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        ClientHttpResponse {
            status,
            head: head.to_owned(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// Creates a session with `initialize`, and returns its header.
    pub(crate) async fn session(&self, revision: Revision) -> String {
        self.session_with(revision, json!({})).await
    }

    /// Like [`session`](Self::session), for a client that declares these capabilities.
    pub(crate) async fn session_with(&self, revision: Revision, capabilities: Value) -> String {
        let hello = json!({"protocolVersion": revision.as_str(), "capabilities": capabilities, "clientInfo": {}});
        let begun = self
            .post(
                "",
                &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
            )
            .await;
        let id = begun
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .unwrap()
            .trim();
        let header = format!("Mcp-Session-Id: {id}\r\n");
        self.post(
            &header,
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        )
        .await;
        header
    }

    /// Opens the stream of a session.
    pub(crate) async fn events(&self, headers: &str) -> EventStream {
        self.open_events(http::MCP_PATH, "GET", headers, "").await
    }

    /// Opens the stream that responds to a request to this path.
    pub(crate) async fn open_events(
        &self,
        path: &str,
        verb: &str,
        headers: &str,
        body: &str,
    ) -> EventStream {
        EventStream {
            stream: self.connect(path, verb, headers, body).await,
            text: String::new(),
        }
    }

    async fn connect(&self, path: &str, verb: &str, headers: &str, body: &str) -> TcpStream {
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

impl EventStream {
    /// Returns whether the response is a stream. Otherwise it is one object.
    pub(crate) async fn is_stream(&mut self) -> bool {
        while !self.text.contains("\r\n\r\n") {
            self.read().await;
        }
        self.text.contains("text/event-stream")
    }

    /// Returns the first event or comment of the stream.
    pub(crate) async fn first(&mut self) -> String {
        loop {
            let body = self.text.split_once("\r\n\r\n").map(|(_, body)| body);
            // Skips the chunk length.
            let first = body.and_then(|body| body.split_once("\r\n")?.1.split_once("\n\n"));
            if let Some((first, _)) = first {
                return first.to_owned();
            }
            self.read().await;
        }
    }

    /// Returns the message of the next event.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.data().await).unwrap()
    }

    /// Returns the data of the next event.
    pub(crate) async fn data(&mut self) -> String {
        loop {
            if let Some((line, rest)) = self.text.split_once("\n\n") {
                let data = line
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .map(str::to_owned);
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return data;
                }
                continue;
            }
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let mut buffer = [0; 4096];
        let reading = tokio::time::timeout(MESSAGE_TIMEOUT, self.stream.read(&mut buffer));
        let length = reading.await.expect("an event in time").unwrap();
        assert!(length > 0, "the stream ended: {}", self.text);
        self.text
            .push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
}
