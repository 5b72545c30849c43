//! What a server listens on, and the sockets of its connections: of TCP, or of Unix.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::task::{Context, Poll};

use anyhow::Context as _;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{RecvFlags, recv};
use tokio::io::{Interest, Ready};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::address::ListenAddress;
use super::peer::PeerSource;

/// Bytes that the system holds of what was sent on a connection and is not read yet. The system's own bound is megabytes
/// per connection of TCP, and not any client's budget. What does not fit waits with the client. What is sent to a Unix
/// socket counts as its sender's, and has a bound there.
const UNREAD: usize = 256 << 10;

/// What a server listens on.
#[derive(Debug)]
pub enum SocketListener {
    /// A port.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

impl From<TcpListener> for SocketListener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for SocketListener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl SocketListener {
    /// Where it listens.
    ///
    /// # Errors
    ///
    /// The system does not say it, or it is a Unix socket without a path.
    pub fn address(&self) -> anyhow::Result<ListenAddress> {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr().map(ListenAddress::Internet),
            Self::Unix(listener) => listener.local_addr().and_then(|address| {
                let path = address.as_pathname().map(Path::to_owned);
                path.map(ListenAddress::Unix).ok_or_else(|| io::Error::other("it has no path"))
            }),
        };
        address.context("failed to read the listener's address")
    }

    /// Bounds what the system holds of each connection.
    pub(super) fn bound(&self) -> io::Result<()> {
        match self {
            // Connections inherit it.
            Self::Tcp(listener) => Ok(set_socket_recv_buffer_size(listener, UNREAD)?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// The next connection, and where it comes from.
    pub(super) async fn accept(&self) -> io::Result<(SocketStream, PeerSource)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Responses are small, and clients wait for them. A connection that has ended says so when it is read.
                drop(stream.set_nodelay(true));
                Ok((SocketStream::Tcp(stream), PeerSource::Internet(peer.ip())))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred()?.uid();
                Ok((SocketStream::Unix(stream), PeerSource::User(user)))
            }
        }
    }
}

/// The socket of a connection.
#[derive(Debug)]
pub(super) enum SocketStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for SocketStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl SocketStream {
    pub(super) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(context),
            Self::Unix(stream) => stream.poll_read_ready(context),
        }
    }

    pub(super) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context),
            Self::Unix(stream) => stream.poll_write_ready(context),
        }
    }

    pub(super) fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(bytes),
            Self::Unix(stream) => stream.try_read(bytes),
        }
    }

    pub(super) fn try_read_buf(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(bytes),
            Self::Unix(stream) => stream.try_read_buf(bytes),
        }
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(parts),
            Self::Unix(stream) => stream.try_write_vectored(parts),
        }
    }

    /// Waits until there may be something to read; says whether the peer has closed its side.
    pub(super) async fn readable(&self) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(Interest::READABLE).await,
            Self::Unix(stream) => stream.ready(Interest::READABLE).await,
        }
    }

    /// Waits until there is something to read, and leaves it there; 0 if nothing more comes.
    pub(super) async fn peek(&self) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(&mut [0]).await,
            Self::Unix(stream) => {
                let look = || Ok(recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)?.1);
                stream.async_io(Interest::READABLE, look).await
            }
        }
    }
}
