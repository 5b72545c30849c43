//! Forwards connections from a local TCP port to the console's own Unix socket, because browsers
//! cannot connect to Unix sockets.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::connections::{ForwardedConnection, ForwardedConnections};
use crate::neighbor;
use crate::word::{SocketRequest, is_own};

/// Maximum time in which a server must respond.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum length of a line from a server, in bytes.
const LINE: u64 = 8 << 10;

/// Delay after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

/// A login token, which works once, and a connection that closes when the server ends.
#[derive(Debug)]
pub struct ConsoleLogin {
    /// The token.
    pub token: String,
    held: BufReader<UnixStream>,
}

impl ConsoleLogin {
    /// Waits until the server has ended.
    pub async fn ended(&mut self) {
        while matches!(self.held.read(&mut [0; 64]).await, Ok(1..)) {}
    }
}

/// Returns a description of what the server with this socket serves.
///
/// # Errors
///
/// Returns an error if the server does not respond or belongs to another user.
pub async fn about(socket: &Path) -> io::Result<String> {
    Ok(asked(socket, SocketRequest::About).await?.0)
}

/// Requests a login token from the server with this socket.
///
/// # Errors
///
/// Returns the same errors as [`about`].
pub async fn login(socket: &Path) -> io::Result<ConsoleLogin> {
    let (token, held) = asked(socket, SocketRequest::Login).await?;
    Ok(ConsoleLogin { token, held })
}

async fn asked(socket: &Path, word: SocketRequest) -> io::Result<(String, BufReader<UnixStream>)> {
    let asking = async {
        let mut stream = connected(socket, word).await?;
        let mut line = String::new();
        let read = BufReader::new((&mut stream).take(LINE)).read_line(&mut line).await?;
        if read == 0 || line.pop() != Some('\n') {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it does not answer"));
        }
        Ok((line, BufReader::new(stream)))
    };
    timeout(PATIENCE, asking).await.map_err(|_| io::Error::new(ErrorKind::TimedOut, "it does not answer"))?
}

async fn connected(socket: &Path, word: SocketRequest) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket).await?;
    if !is_own(&stream)? {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is another user's"));
    }
    stream.write_u8(word.byte()).await?;
    Ok(stream)
}

/// Forwards connections between `listener` and the server with this socket. Never returns.
pub async fn forward(listener: TcpListener, socket: &Path) {
    let mut open = ForwardedConnections::default();
    loop {
        match listener.accept().await {
            Ok((browser, peer)) => {
                let own = browser.local_addr().ok();
                let user = spawn_blocking(move || neighbor::user(peer, own?)).await.ok().flatten();
                let (socket, answered) = (socket.to_owned(), Arc::new(AtomicBool::new(false)));
                let noted = Arc::clone(&answered);
                let passing = tokio::spawn(async move { drop(pass(browser, &socket, &noted).await) }).abort_handle();
                open.add(ForwardedConnection { user, passing, answered });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Forwards bytes in both directions until the server closes the connection, which it always does
/// after some time.
async fn pass(mut browser: TcpStream, socket: &Path, answered: &AtomicBool) -> io::Result<()> {
    let mut server = timeout(PATIENCE, connected(socket, SocketRequest::Pages)).await??;
    let ((mut from_browser, mut to_browser), (mut from_server, mut to_server)) = (browser.split(), server.split());
    let up = async {
        // When the browser disconnects, the server closes the connection.
        drop(copy(&mut from_browser, &mut to_server).await);
        drop(to_server.shutdown().await);
        std::future::pending::<()>().await;
    };
    let down = async {
        let mut first = [0; 512];
        let length = from_server.read(&mut first).await?;
        answered.store(length > 0, Ordering::Relaxed);
        to_browser.write_all(first.get(..length).unwrap_or_default()).await?;
        copy(&mut from_server, &mut to_browser).await
    };
    tokio::select! {
        down = down => down.map(drop),
        () = up => Ok(()),
    }
}
