//! The way from a port of this machine to the console's own socket, for browsers: they connect to no Unix socket.

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

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest line of a server, in bytes.
const LINE: u64 = 8 << 10;

/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

/// A token that opens the console once, and the connection that ends with the server.
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

/// What the server with this socket serves.
///
/// # Errors
///
/// It does not answer, or is another user's.
pub async fn about(socket: &Path) -> io::Result<String> {
    Ok(asked(socket, SocketRequest::About).await?.0)
}

/// Has the server with this socket give a token.
///
/// # Errors
///
/// As those of [`about`].
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

/// Passes on what comes to `listener`, and what the server with this socket answers. Does not return.
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

/// Passes bytes on in both directions until the server has ended the connection, which it does in any case after some time.
async fn pass(mut browser: TcpStream, socket: &Path, answered: &AtomicBool) -> io::Result<()> {
    let mut server = timeout(PATIENCE, connected(socket, SocketRequest::Pages)).await??;
    let ((mut from_browser, mut to_browser), (mut from_server, mut to_server)) = (browser.split(), server.split());
    let up = async {
        // A browser that has left has the server end the connection.
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
