//! The console on a socket of its own, beside a server that serves MCP over standard input and output.
//!
//! Only processes of the server's user are heard. Everything of the console is made when the first of them wants it.

use std::io::ErrorKind;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::access::ConsoleAccess;
use crate::answer::guarded;
use crate::word::{SocketRequest, is_own};

/// Connections at once. Further ones are closed.
const CONNECTIONS: usize = 64;

/// Of these, those with the requests of browsers: the others are left for whoever has the socket itself.
const BROWSERS: usize = 48;

/// How long the first byte, and the head of a request, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// After this time, a connection with requests ends with the response that is being made, or after as much again.
const LIFE: Duration = Duration::from_mins(10);

/// Bytes that a connection may have read or written ahead. Also the longest head of a request.
const BUFFER: usize = 64 << 10;

/// Pause after a failed accept, such as too many open files: another connection must close first.
const PAUSE: Duration = Duration::from_millis(100);

/// The console, once it is wanted.
#[derive(Debug)]
pub struct OpenedConsole {
    /// Its pages.
    pub router: Router,
    /// Who opens it: as [`ConsoleAccess::socket`] says.
    pub access: ConsoleAccess,
}

/// What all connections share.
struct SocketState<F> {
    about: String,
    opened: LazyLock<Option<OpenedConsole>, F>,
    browsers: Semaphore,
}

/// Serves the console on `listener` until this is dropped. `about` says what the server serves, and `open` makes the console
/// when it is wanted for the first time; `None` if the server is about to end.
pub async fn serve<F>(listener: UnixListener, about: String, open: F)
where
    F: FnOnce() -> Option<OpenedConsole> + Send + Sync + 'static,
{
    let shared = Arc::new(SocketState { about, opened: LazyLock::new(open), browsers: Semaphore::new(BROWSERS) });
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while connections.try_join_next().is_some() {}
                // Nobody else could connect, but for a mode that was changed.
                if connections.len() < CONNECTIONS && is_own(&stream).unwrap_or(false) {
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                tracing::warn!(%error, "console: failed to accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn connection<F>(mut stream: UnixStream, shared: Arc<SocketState<F>>)
where
    F: FnOnce() -> Option<OpenedConsole> + Send + Sync + 'static,
{
    let Ok(Ok(byte)) = timeout(PATIENCE, stream.read_u8()).await else { return };
    match SocketRequest::of(byte) {
        Some(SocketRequest::About) => say(&mut stream, &shared.about).await,
        Some(SocketRequest::Login) => {
            let Some(opened) = &*shared.opened else { return };
            let Some(token) = opened.access.issue() else { return };
            say(&mut stream, &token).await;
            // Whoever asked learns of the end of the server by that of the connection.
            while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
        }
        Some(SocketRequest::Pages) => {
            let Ok(_place) = shared.browsers.try_acquire() else { return };
            let Some(opened) = &*shared.opened else { return };
            pages(stream, opened.router.clone()).await;
        }
        None => {}
    }
}

/// Says a line. Whoever does not read it does not get it.
async fn say(stream: &mut UnixStream, line: &str) {
    drop(timeout(PATIENCE, stream.write_all(format!("{line}\n").as_bytes())).await);
}

/// Answers requests.
async fn pages(stream: UnixStream, router: Router) {
    let router = router.layer(from_fn(only_local));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(BUFFER);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        ended = serving.as_mut() => return drop(ended),
        () = sleep(LIFE) => serving.as_mut().graceful_shutdown(),
    }
    drop(timeout(LIFE, serving).await);
}

/// Rejects requests that name another host: a page of that host could have made them, by having its name lead here.
async fn only_local(request: Request, next: Next) -> Response {
    if names_this_machine(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    tracing::warn!("console: a request for another host was rejected");
    guarded((StatusCode::FORBIDDEN, "the console is served to this machine alone\n").into_response())
}

fn names_this_machine(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.host().eq_ignore_ascii_case(name));
    local && !host.as_str().contains('@') && uri.authority().is_none_or(|target| *target == host)
}

#[cfg(test)]
mod tests;
