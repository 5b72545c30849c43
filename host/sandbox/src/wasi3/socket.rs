//! A TCP socket of a guest: where it is between its creation and its connection, and the two streams of that.

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

/// How a stream of a connection ended.
pub(super) type SocketStreamEnd = oneshot::Sender<Result<(), ErrorCode>>;

/// A socket. What it holds is held until its streams are gone as well.
pub(super) struct TcpState {
    progress: ConnectProgress,
    pub(super) family: IpAddressFamily,
    room: Arc<SocketMemory>,
}

enum ConnectProgress {
    New(TcpSocket),
    /// The connection is being made, or was given up.
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

    /// Whether it has not been connected.
    pub(super) fn check_new(&self) -> Result<(), ErrorCode> {
        match &self.progress {
            ConnectProgress::New(_) => Ok(()),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::Connecting | ConnectProgress::Connected { .. } => Err(ErrorCode::InvalidState),
        }
    }

    /// Takes what is to be connected, once.
    pub(super) fn begin(&mut self) -> Result<TcpSocket, ErrorCode> {
        self.check_new()?;
        match mem::replace(&mut self.progress, ConnectProgress::Connecting) {
            ConnectProgress::New(socket) => Ok(socket),
            _ => Err(ErrorCode::InvalidState),
        }
    }

    /// The connection is made, or it failed.
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

    /// Takes one of its streams, once.
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

    /// Its connection, if there is one.
    pub(super) fn connection(&self) -> Result<&TcpStream, ErrorCode> {
        match &self.progress {
            ConnectProgress::Connected { stream, .. } => Ok(stream),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::New(_) | ConnectProgress::Connecting => Err(ErrorCode::InvalidState),
        }
    }

    /// Its descriptor, if it has one at the moment.
    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, ErrorCode> {
        match &self.progress {
            ConnectProgress::New(socket) => Ok(socket.as_fd()),
            ConnectProgress::Connecting | ConnectProgress::Connected { .. } | ConnectProgress::Closed(_) => {
                self.connection().map(|stream| stream.as_fd())
            }
        }
    }

    /// Whether an address is one that this kind of socket has.
    pub(super) fn reaches(&self, address: SocketAddr) -> bool {
        match self.family {
            IpAddressFamily::Ipv4 => address.is_ipv4(),
            IpAddressFamily::Ipv6 => address.is_ipv6(),
        }
    }
}

/// What a guest sends.
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
            // The guest waits until it can write.
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

/// The guest sends no more, and the other side is told.
impl Drop for SocketSender {
    fn drop(&mut self) {
        let _closed = shutdown(&self.end.stream, Shutdown::Write);
        end(&mut self.ended, Ok(()));
    }
}

/// What a guest receives.
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
            // The guest waits until it can read.
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

/// The guest receives no more.
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

/// Tries until it works, fails or has to wait.
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
