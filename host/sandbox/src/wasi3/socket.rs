//! A guest's TCP socket: its state between creation and connection, and the two streams of the
//! connection.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{io, mem};

use bytes::Bytes;
use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, Source, StreamConsumer, StreamProducer, StreamResult};
use wasmtime_wasi::p3::bindings::sockets::types::{ErrorCode, IpAddressFamily};

use super::pieces::{PIECE, StreamRound, next, put};
use crate::sockets::{KERNEL, SocketMemory};
use crate::state::StoreState;
use crate::traffic::TcpTraffic;

/// Sender that reports the end of a connection's stream.
pub(super) type SocketStreamEnd = oneshot::Sender<Result<(), ErrorCode>>;

/// A TCP socket. Its resources are released after its streams are dropped.
pub(super) struct TcpState {
    progress: ConnectProgress,
    pub(super) family: IpAddressFamily,
    room: Arc<SocketMemory>,
}

enum ConnectProgress {
    New(TcpSocket),
    /// The connection is being opened, or the attempt was abandoned.
    Connecting,
    Connected {
        stream: Arc<TcpStream>,
        sends: bool,
        receives: bool,
    },
    Closed(ErrorCode),
}

/// One of the two streams of a connection.
pub(super) struct SocketSide {
    stream: Arc<TcpStream>,
    _room: Arc<SocketMemory>,
}

impl TcpState {
    pub(super) fn new(family: IpAddressFamily, room: SocketMemory) -> Result<Self, ErrorCode> {
        let socket = match family {
            IpAddressFamily::Ipv4 => TcpSocket::new_v4()?,
            IpAddressFamily::Ipv6 => TcpSocket::new_v6()?,
        };
        if matches!(family, IpAddressFamily::Ipv6) {
            sockopt::set_ipv6_v6only(&socket, true).map_err(io::Error::from)?;
        }
        let most = usize::try_from(KERNEL).unwrap_or(usize::MAX);
        sockopt::set_socket_recv_buffer_size(&socket, most).map_err(io::Error::from)?;
        sockopt::set_socket_send_buffer_size(&socket, most).map_err(io::Error::from)?;
        Ok(Self { progress: ConnectProgress::New(socket), family, room: Arc::new(room) })
    }

    /// Checks that the socket was not connected yet.
    pub(super) fn check_new(&self) -> Result<(), ErrorCode> {
        match &self.progress {
            ConnectProgress::New(_) => Ok(()),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::Connecting | ConnectProgress::Connected { .. } => Err(ErrorCode::InvalidState),
        }
    }

    /// Takes the system socket to connect it, once.
    pub(super) fn begin(&mut self) -> Result<TcpSocket, ErrorCode> {
        self.check_new()?;
        match mem::replace(&mut self.progress, ConnectProgress::Connecting) {
            ConnectProgress::New(socket) => Ok(socket),
            _ => Err(ErrorCode::InvalidState),
        }
    }

    /// Stores the result of the connection attempt.
    pub(super) fn finish(&mut self, connected: io::Result<TcpStream>) -> Result<(), ErrorCode> {
        match connected {
            Ok(stream) => {
                self.progress = ConnectProgress::Connected { stream: Arc::new(stream), sends: false, receives: false };
                Ok(())
            }
            Err(error) => {
                let code = ErrorCode::from(error);
                self.progress = ConnectProgress::Closed(code.clone());
                Err(code)
            }
        }
    }

    /// Takes one of the two streams, once.
    pub(super) fn end(&mut self, is_sent: bool) -> Result<SocketSide, ErrorCode> {
        match &mut self.progress {
            ConnectProgress::Connected { stream, sends, receives } => {
                let taken = if is_sent { sends } else { receives };
                if mem::replace(taken, true) {
                    return Err(ErrorCode::InvalidState);
                }
                Ok(SocketSide { stream: Arc::clone(stream), _room: Arc::clone(&self.room) })
            }
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::New(_) | ConnectProgress::Connecting => Err(ErrorCode::InvalidState),
        }
    }

    /// Returns the connection, if there is one.
    pub(super) fn connection(&self) -> Result<&TcpStream, ErrorCode> {
        match &self.progress {
            ConnectProgress::Connected { stream, .. } => Ok(stream),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::New(_) | ConnectProgress::Connecting => Err(ErrorCode::InvalidState),
        }
    }

    /// Returns the file descriptor, if the socket has one in its current state.
    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, ErrorCode> {
        match &self.progress {
            ConnectProgress::New(socket) => Ok(socket.as_fd()),
            ConnectProgress::Connecting | ConnectProgress::Connected { .. } | ConnectProgress::Closed(_) => {
                self.connection().map(|stream| stream.as_fd())
            }
        }
    }

    /// Returns whether the address family matches the socket.
    pub(super) fn reaches(&self, address: SocketAddr) -> bool {
        match self.family {
            IpAddressFamily::Ipv4 => address.is_ipv4(),
            IpAddressFamily::Ipv6 => address.is_ipv6(),
        }
    }
}

/// Consumer of the data that a guest sends.
pub(super) struct SocketSender {
    end: SocketSide,
    traffic: Arc<TcpTraffic>,
    ended: Option<SocketStreamEnd>,
}

impl SocketSender {
    pub(super) fn new(end: SocketSide, traffic: Arc<TcpTraffic>, ended: SocketStreamEnd) -> Self {
        Self { end, traffic, ended: Some(ended) }
    }
}

impl StreamConsumer<StoreState> for SocketSender {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        store: StoreContextMut<'_, StoreState>,
        from: Source<'_, u8>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let mut from = from.as_direct(store);
        let piece = next(&mut from);
        let done = if piece.is_empty() {
            // An empty write waits until the connection is writable.
            self.end.stream.poll_write_ready(context).map_ok(|()| 0)
        } else {
            again(context, TcpStream::poll_write_ready, &self.end.stream, || self.end.stream.try_write(piece))
        };
        match done {
            Poll::Ready(Ok(length)) => {
                self.traffic.transfer(length)?;
                from.mark_read(length);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => {
                end(&mut self.ended, Err(error.into()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Shuts down the sending side, which notifies the peer.
impl Drop for SocketSender {
    fn drop(&mut self) {
        let _closed = shutdown(&self.end.stream, Shutdown::Write);
        end(&mut self.ended, Ok(()));
    }
}

/// Producer of the data that a guest receives.
pub(super) struct SocketReceiver {
    end: SocketSide,
    traffic: Arc<TcpTraffic>,
    ended: Option<SocketStreamEnd>,
    round: StreamRound,
}

impl SocketReceiver {
    pub(super) fn new(end: SocketSide, traffic: Arc<TcpTraffic>, ended: SocketStreamEnd) -> Self {
        Self { end, traffic, ended: Some(ended), round: StreamRound::default() }
    }
}

impl StreamProducer<StoreState> for SocketReceiver {
    type Item = u8;
    type Buffer = Bytes;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, StoreState>,
        to: Destination<'a, u8, Bytes>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if !finish && self.round.is_over(context) {
            return Poll::Pending;
        }
        let room = to.remaining(&mut store).unwrap_or(PIECE).min(PIECE);
        let mut piece = vec![0; room];
        let done = if room == 0 {
            // An empty read waits until the connection is readable.
            self.end.stream.poll_read_ready(context).map_ok(|()| 0)
        } else {
            again(context, TcpStream::poll_read_ready, &self.end.stream, || self.end.stream.try_read(&mut piece))
        };
        match done {
            Poll::Ready(Ok(_)) if room == 0 => Poll::Ready(Ok(StreamResult::Completed)),
            Poll::Ready(Ok(0)) => {
                end(&mut self.ended, Ok(()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Poll::Ready(Ok(length)) => {
                self.traffic.transfer(length)?;
                put(to, store, piece.get(..length).unwrap_or_default());
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => {
                end(&mut self.ended, Err(error.into()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Shuts down the receiving side.
impl Drop for SocketReceiver {
    fn drop(&mut self) {
        let _closed = shutdown(&self.end.stream, Shutdown::Read);
        end(&mut self.ended, Ok(()));
    }
}

fn end(ended: &mut Option<SocketStreamEnd>, result: Result<(), ErrorCode>) {
    if let Some(ended) = ended.take() {
        drop(ended.send(result));
    }
}

/// Retries until the operation succeeds, fails or must wait.
fn again(
    context: &mut Context<'_>,
    is_ready: impl Fn(&TcpStream, &mut Context<'_>) -> Poll<io::Result<()>>,
    stream: &TcpStream,
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(is_ready(stream, context))?,
            done => return Poll::Ready(done),
        }
    }
}
