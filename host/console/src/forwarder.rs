//! Forwards connections from a local TCP port to the console's own Unix socket, because browsers
//! cannot connect to Unix sockets.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::{sleep, timeout};
use toolbay_socket::connection_user;

use crate::forwarded_connections::{ForwardedConnection, ForwardedConnections};
use crate::socket_protocol::{STOPPED, SocketRequest, is_own_process};

/// Maximum time in which a server must respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a line from a server, in bytes.
const MAX_LINE_BYTES: u64 = 8 << 10;

/// Maximum length of a line with the running calls of a server, in bytes.
const MAX_CALLS_BYTES: u64 = 4 << 20;

/// Delay after a failed accept.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A login token, which works once, and a connection that closes when the server ends.
#[derive(Debug)]
pub struct ConsoleLogin {
    /// The token.
    pub token: String,
    connection: BufReader<UnixStream>,
}

impl ConsoleLogin {
    /// Waits until the server has ended.
    pub async fn wait_for_server_end(&mut self) {
        while matches!(self.connection.read(&mut [0; 64]).await, Ok(1..)) {}
    }
}

/// Returns a description of what the server with this socket serves.
///
/// # Errors
///
/// Returns an error if the server does not respond or belongs to another user.
pub async fn describe_server(socket: &Path) -> io::Result<String> {
    Ok(
        request_line(socket, SocketRequest::About, "", MAX_LINE_BYTES)
            .await?
            .0,
    )
}

/// Requests a login token from the server with this socket.
///
/// # Errors
///
/// Returns the same errors as [`describe_server`].
pub async fn request_login(socket: &Path) -> io::Result<ConsoleLogin> {
    let (token, connection) =
        request_line(socket, SocketRequest::Login, "", MAX_LINE_BYTES).await?;
    Ok(ConsoleLogin { token, connection })
}

/// Returns the running calls of the server with this socket, as JSON.
///
/// # Errors
///
/// Returns the same errors as [`describe_server`]. A server of an earlier version does not respond.
pub async fn list_running_calls(socket: &Path) -> io::Result<String> {
    Ok(
        request_line(socket, SocketRequest::Calls, "", MAX_CALLS_BYTES)
            .await?
            .0,
    )
}

/// Stops a running call of the server with this socket. Returns whether it was running.
///
/// # Errors
///
/// Returns the same errors as [`list_running_calls`].
pub async fn stop_running_call(socket: &Path, id: u64) -> io::Result<bool> {
    let number = format!("{id}\n");
    let (answer, _) = request_line(socket, SocketRequest::Stop, &number, MAX_LINE_BYTES).await?;
    Ok(answer == STOPPED)
}

/// Sends a request with its data, and reads a line of at most `max_bytes`.
async fn request_line(
    socket: &Path,
    request: SocketRequest,
    data: &str,
    max_bytes: u64,
) -> io::Result<(String, BufReader<UnixStream>)> {
    let exchange = async {
        let mut stream = connect_and_request(socket, request).await?;
        stream.write_all(data.as_bytes()).await?;
        let mut line = String::new();
        let length = BufReader::new((&mut stream).take(max_bytes))
            .read_line(&mut line)
            .await?;
        if length == 0 || line.pop() != Some('\n') {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "it does not respond",
            ));
        }
        Ok((line, BufReader::new(stream)))
    };
    timeout(RESPONSE_TIMEOUT, exchange)
        .await
        .map_err(|_| io::Error::new(ErrorKind::TimedOut, "it does not respond"))?
}

/// Connects to the server with this socket, and sends the kind of the request.
pub(crate) async fn connect_and_request(
    socket: &Path,
    request: SocketRequest,
) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket).await?;
    if !is_own_process(&stream)? {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it belongs to another user",
        ));
    }
    stream.write_u8(request.byte()).await?;
    Ok(stream)
}

/// Forwards connections between `listener` and the server with this socket. Never returns.
pub async fn forward(listener: TcpListener, socket: &Path) {
    let mut connections = ForwardedConnections::default();
    loop {
        match listener.accept().await {
            Ok((browser, peer)) => {
                let local_address = browser.local_addr().ok();
                let user = local_address.and_then(|own| connection_user(peer, own).ok().flatten());
                let socket = socket.to_owned();
                let has_response = Arc::new(AtomicBool::new(false));
                let response_flag = Arc::clone(&has_response);
                let task = tokio::spawn(async move {
                    drop(forward_connection(browser, &socket, &response_flag).await);
                })
                .abort_handle();
                connections.add(ForwardedConnection {
                    user,
                    task,
                    has_response,
                });
            }
            Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Forwards bytes in both directions until the server closes the connection, which it always does
/// after some time.
async fn forward_connection(
    mut browser: TcpStream,
    socket: &Path,
    has_response: &AtomicBool,
) -> io::Result<()> {
    let mut server = timeout(
        RESPONSE_TIMEOUT,
        connect_and_request(socket, SocketRequest::Pages),
    )
    .await??;
    let (mut from_browser, mut to_browser) = browser.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        // When the browser disconnects, the server closes the connection.
        drop(copy(&mut from_browser, &mut to_server).await);
        drop(to_server.shutdown().await);
        std::future::pending::<()>().await;
    };
    let down = async {
        let mut first = [0; 512];
        let length = from_server.read(&mut first).await?;
        has_response.store(length > 0, Ordering::Relaxed);
        to_browser
            .write_all(first.get(..length).unwrap_or_default())
            .await?;
        copy(&mut from_server, &mut to_browser).await
    };
    tokio::select! {
        down = down => down.map(drop),
        () = up => Ok(()),
    }
}
