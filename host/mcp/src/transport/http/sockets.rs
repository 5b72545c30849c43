//! Listeners and connection sockets, for TCP and for Unix sockets.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
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

/// Receive buffer of a connection, in bytes. The default of the system is megabytes per TCP
/// connection, and is not charged to any client's budget. The rest of the data waits at the client.
/// Data sent to a Unix socket is charged to its sender, and bounded there.
const RECEIVE_BUFFER_BYTES: usize = 256 << 10;

/// A listening socket.
#[derive(Debug)]
pub enum SocketListener {
    /// A TCP port.
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
    /// Returns the local address.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not report the address, or if a Unix socket has no path.
    pub fn address(&self) -> anyhow::Result<ListenAddress> {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr().map(ListenAddress::Internet),
            Self::Unix(listener) => listener.local_addr().and_then(|address| {
                let path = address.as_pathname().map(Path::to_owned);
                path.map(ListenAddress::Unix)
                    .ok_or_else(|| io::Error::other("it has no path"))
            }),
        };
        address.context("failed to read the listener's address")
    }

    /// Bounds the receive buffer of each connection.
    pub(super) fn limit_receive_buffers(&self) -> io::Result<()> {
        match self {
            // Accepted connections inherit the option.
            Self::Tcp(listener) => Ok(set_socket_recv_buffer_size(listener, RECEIVE_BUFFER_BYTES)?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Accepts the next connection, and returns its origin.
    pub(super) async fn accept(&self) -> io::Result<(SocketStream, PeerSource)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Responses are small and latency-sensitive. If the connection has ended, the next
                // read reports it.
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

/// A connection's socket.
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
    /// Returns the addresses of the peer and of this end. `None` for a Unix socket, and if the
    /// connection has ended.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(stream) => Some((stream.peer_addr().ok()?, stream.local_addr().ok()?)),
            Self::Unix(_) => None,
        }
    }

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

    /// Waits until the socket may be readable. The result states whether the peer has closed its
    /// sending side.
    pub(super) async fn readable(&self) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(Interest::READABLE).await,
            Self::Unix(stream) => stream.ready(Interest::READABLE).await,
        }
    }

    /// Waits until data arrives, and leaves it in the buffer. Returns 0 at the end of the stream.
    pub(super) async fn peek(&self) -> io::Result<usize> {
        self.peek_into(&mut [0]).await
    }

    /// Waits until data arrives, and returns its first byte, which stays in the buffer. Returns
    /// `None` at the end of the stream.
    pub(super) async fn peek_byte(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = self.peek_into(&mut byte).await?;
        Ok(byte.first().copied().filter(|_| count > 0))
    }

    async fn peek_into(&self, byte: &mut [u8; 1]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(byte).await,
            Self::Unix(stream) => {
                let look =
                    || Ok(recv(stream, &mut *byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?.1);
                stream.async_io(Interest::READABLE, look).await
            }
        }
    }
}
