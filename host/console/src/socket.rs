//! The console on its own Unix socket, for a server that serves MCP over standard I/O.
//!
//! Only processes of the server's user can connect. The console is created when it is first needed.

use std::fmt;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::access::ConsoleAccess;
use crate::approval_requests::{ApprovalHandler, handle_request};
use crate::rejection_log::FormRejections;
use crate::responses::with_security_headers;
use crate::socket_protocol::{STOPPED, SocketRequest, is_own_process};

/// Maximum number of connections. Further ones are closed.
const MAX_CONNECTIONS: usize = 64;

/// Maximum number of connections with browser requests. The others are reserved for clients of the
/// socket itself.
const MAX_BROWSER_CONNECTIONS: usize = 48;

/// Timeout for the first byte, and for the head of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a connection with requests shuts down gracefully. It is closed after the same
/// time again.
const CONNECTION_LIFETIME: Duration = Duration::from_mins(10);

/// Size of the read and write buffers of a connection, in bytes. Also the maximum size of a request
/// head.
const BUFFER_BYTES: usize = 64 << 10;

/// Delay after a failed accept. An error such as too many open files requires that another
/// connection closes first.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Maximum length of a line with a number, in bytes.
const MAX_NUMBER_BYTES: u64 = 32;

/// The console, created on first use.
pub struct OpenedConsole {
    /// The router of the pages.
    pub router: Router,
    /// The handler of requests about waiting calls.
    pub approvals: ApprovalHandler,
    /// The access control, created with [`ConsoleAccess::socket`].
    pub access: ConsoleAccess,
}

impl fmt::Debug for OpenedConsole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedConsole").finish_non_exhaustive()
    }
}

/// What a client of the socket can do with the calls of the server.
pub trait CallControl: Send + Sync + 'static {
    /// Returns the running calls as JSON, on one line.
    fn running_calls(&self) -> String;

    /// Stops a running call. Returns whether it was running.
    fn stop_call(&self, id: u64) -> bool;
}

/// State shared by all connections.
struct SocketState<F> {
    about: String,
    control: Arc<dyn CallControl>,
    console: LazyLock<Option<OpenedConsole>, F>,
    browser_permits: Semaphore,
    /// The rejected requests, for the log.
    rejections: FormRejections,
}

/// Serves the console on `listener` until the future is dropped. `about` describes what the server
/// serves. `control` lists and stops calls. `open` creates the console on first use; it returns `None` if the server is shutting
/// down.
pub async fn serve<F>(listener: UnixListener, about: String, control: Arc<dyn CallControl>, open: F)
where
    F: FnOnce() -> Option<OpenedConsole> + Send + Sync + 'static,
{
    let shared = Arc::new(SocketState {
        about,
        control,
        console: LazyLock::new(open),
        browser_permits: Semaphore::new(MAX_BROWSER_CONNECTIONS),
        rejections: FormRejections::default(),
    });
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while connections.try_join_next().is_some() {}
                // Other users can only connect if the mode of the socket was changed.
                if connections.len() < MAX_CONNECTIONS && is_own_process(&stream).unwrap_or(false) {
                    connections.spawn(handle_connection(stream, Arc::clone(&shared)));
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "console: failed to accept a connection");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn handle_connection<F>(mut stream: UnixStream, shared: Arc<SocketState<F>>)
where
    F: FnOnce() -> Option<OpenedConsole> + Send + Sync + 'static,
{
    let Ok(Ok(byte)) = timeout(REQUEST_TIMEOUT, stream.read_u8()).await else {
        return;
    };
    match SocketRequest::from_byte(byte) {
        Some(SocketRequest::About) => send_line(&mut stream, &shared.about).await,
        Some(SocketRequest::Login) => {
            let Some(console) = &*shared.console else {
                return;
            };
            let Some(token) = console.access.issue() else {
                return;
            };
            send_line(&mut stream, &token).await;
            // The end of the connection notifies the client of the end of the server.
            while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
        }
        Some(SocketRequest::Approvals) => {
            // Whoever can open the console with a login token can also answer here.
            if let Some(console) = &*shared.console
                && console.access.is_local()
            {
                handle_request(&mut stream, &console.approvals).await;
            }
        }
        Some(SocketRequest::Calls) => {
            let calls = shared.control.running_calls();
            send_line(&mut stream, &calls).await;
        }
        Some(SocketRequest::Stop) => {
            let Some(id) = read_number(&mut stream).await else {
                return;
            };
            let is_stopped = shared.control.stop_call(id);
            send_line(&mut stream, if is_stopped { STOPPED } else { "unknown" }).await;
        }
        Some(SocketRequest::Pages) => {
            let Ok(_permit) = shared.browser_permits.try_acquire() else {
                return;
            };
            let Some(console) = &*shared.console else {
                return;
            };
            serve_pages(stream, console.router.clone(), shared.rejections.clone()).await;
        }
        None => {}
    }
}

/// Reads a line with a number.
async fn read_number(stream: &mut UnixStream) -> Option<u64> {
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(MAX_NUMBER_BYTES));
    let read = timeout(REQUEST_TIMEOUT, reader.read_line(&mut line)).await;
    read.ok()?.ok()?;
    line.strip_suffix('\n')?.parse().ok()
}

/// Sends a line. Gives up if the client does not read it.
async fn send_line(stream: &mut UnixStream, line: &str) {
    drop(
        timeout(
            REQUEST_TIMEOUT,
            stream.write_all(format!("{line}\n").as_bytes()),
        )
        .await,
    );
}

/// Serves HTTP requests.
async fn serve_pages(stream: UnixStream, router: Router, rejections: FormRejections) {
    let router = router.layer(from_fn_with_state(rejections, reject_foreign_hosts));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(BUFFER_BYTES);
    let mut connection =
        pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        ended = connection.as_mut() => return drop(ended),
        () = sleep(CONNECTION_LIFETIME) => connection.as_mut().graceful_shutdown(),
    }
    drop(timeout(CONNECTION_LIFETIME, connection).await);
}

/// Rejects requests for other hosts, which can come from a web page whose host name resolves to
/// this machine.
async fn reject_foreign_hosts(
    State(rejections): State<FormRejections>,
    request: Request,
    next: Next,
) -> Response {
    if is_local_request(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    rejections.warn(None, "a request for another host");
    with_security_headers(
        (
            StatusCode::FORBIDDEN,
            "the console is served only to this machine\n",
        )
            .into_response(),
    )
}

fn is_local_request(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Some(host) = host
        .to_str()
        .ok()
        .and_then(|host| host.parse::<Authority>().ok())
    else {
        return false;
    };
    let is_local = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|name| host.host().eq_ignore_ascii_case(name));
    is_local && !host.as_str().contains('@') && uri.authority().is_none_or(|target| *target == host)
}

#[cfg(test)]
mod tests;
