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

use super::stream_chunks::{ChunkCounter, MAX_CHUNK_BYTES, next_chunk, write_chunk};
use crate::capability::sockets::call_sockets::{KERNEL_BUFFER_BYTES, SocketResources};
use crate::capability::sockets::tcp_usage::TcpTraffic;
use crate::store::state::StoreState;

/// Sender that reports the end of a connection's stream.
pub(super) type SocketStreamEnd = oneshot::Sender<Result<(), ErrorCode>>;

/// A TCP socket. Its resources are released after its streams are dropped.
pub(super) struct TcpState {
    state: ConnectProgress,
    pub(super) family: IpAddressFamily,
    resources: Arc<SocketResources>,
}

enum ConnectProgress {
    New(TcpSocket),
    /// The connection is being opened, or the attempt was abandoned.
    Connecting,
    Connected {
        stream: Arc<TcpStream>,
        has_sender: bool,
        has_receiver: bool,
    },
    Closed(ErrorCode),
}

/// One of the two streams of a connection.
pub(super) struct SocketHalf {
    stream: Arc<TcpStream>,
    _resources: Arc<SocketResources>,
}

impl TcpState {
    pub(super) fn new(
        family: IpAddressFamily,
        resources: SocketResources,
    ) -> Result<Self, ErrorCode> {
        let socket = match family {
            IpAddressFamily::Ipv4 => TcpSocket::new_v4()?,
            IpAddressFamily::Ipv6 => TcpSocket::new_v6()?,
        };
        if matches!(family, IpAddressFamily::Ipv6) {
            sockopt::set_ipv6_v6only(&socket, true).map_err(io::Error::from)?;
        }
        let buffer_bytes = usize::try_from(KERNEL_BUFFER_BYTES).unwrap_or(usize::MAX);
        sockopt::set_socket_recv_buffer_size(&socket, buffer_bytes).map_err(io::Error::from)?;
        sockopt::set_socket_send_buffer_size(&socket, buffer_bytes).map_err(io::Error::from)?;
        Ok(Self {
            state: ConnectProgress::New(socket),
            family,
            resources: Arc::new(resources),
        })
    }

    /// Checks that no connection attempt was made with this socket.
    pub(super) fn check_new(&self) -> Result<(), ErrorCode> {
        match &self.state {
            ConnectProgress::New(_) => Ok(()),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::Connecting | ConnectProgress::Connected { .. } => {
                Err(ErrorCode::InvalidState)
            }
        }
    }

    /// Takes the system socket to connect it, once.
    pub(super) fn start_connect(&mut self) -> Result<TcpSocket, ErrorCode> {
        self.check_new()?;
        match mem::replace(&mut self.state, ConnectProgress::Connecting) {
            ConnectProgress::New(socket) => Ok(socket),
            _ => Err(ErrorCode::InvalidState),
        }
    }

    /// Stores the result of the connection attempt.
    pub(super) fn finish_connect(
        &mut self,
        outcome: io::Result<TcpStream>,
    ) -> Result<(), ErrorCode> {
        match outcome {
            Ok(stream) => {
                self.state = ConnectProgress::Connected {
                    stream: Arc::new(stream),
                    has_sender: false,
                    has_receiver: false,
                };
                Ok(())
            }
            Err(error) => {
                let code = ErrorCode::from(error);
                self.state = ConnectProgress::Closed(code.clone());
                Err(code)
            }
        }
    }

    /// Takes one of the two streams, once.
    pub(super) fn take_half(&mut self, is_sender: bool) -> Result<SocketHalf, ErrorCode> {
        match &mut self.state {
            ConnectProgress::Connected {
                stream,
                has_sender,
                has_receiver,
            } => {
                let is_taken = if is_sender { has_sender } else { has_receiver };
                if mem::replace(is_taken, true) {
                    return Err(ErrorCode::InvalidState);
                }
                Ok(SocketHalf {
                    stream: Arc::clone(stream),
                    _resources: Arc::clone(&self.resources),
                })
            }
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::New(_) | ConnectProgress::Connecting => Err(ErrorCode::InvalidState),
        }
    }

    /// Returns the connection, if there is one.
    pub(super) fn connection(&self) -> Result<&TcpStream, ErrorCode> {
        match &self.state {
            ConnectProgress::Connected { stream, .. } => Ok(stream),
            ConnectProgress::Closed(code) => Err(code.clone()),
            ConnectProgress::New(_) | ConnectProgress::Connecting => Err(ErrorCode::InvalidState),
        }
    }

    /// Returns the file descriptor, if the socket has one in its current state.
    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, ErrorCode> {
        match &self.state {
            ConnectProgress::New(socket) => Ok(socket.as_fd()),
            ConnectProgress::Connecting
            | ConnectProgress::Connected { .. }
            | ConnectProgress::Closed(_) => self.connection().map(|stream| stream.as_fd()),
        }
    }

    /// Returns whether the address family matches the socket.
    pub(super) fn supports_address(&self, address: SocketAddr) -> bool {
        match self.family {
            IpAddressFamily::Ipv4 => address.is_ipv4(),
            IpAddressFamily::Ipv6 => address.is_ipv6(),
        }
    }
}

/// Consumer of the data that a guest sends.
pub(super) struct SocketSender {
    half: SocketHalf,
    tcp_usage: Arc<TcpTraffic>,
    end_sender: Option<SocketStreamEnd>,
}

impl SocketSender {
    pub(super) fn new(
        half: SocketHalf,
        traffic: Arc<TcpTraffic>,
        end_sender: SocketStreamEnd,
    ) -> Self {
        Self {
            half,
            tcp_usage: traffic,
            end_sender: Some(end_sender),
        }
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
        let mut source = from.as_direct(store);
        let chunk = next_chunk(&mut source);
        let outcome = if chunk.is_empty() {
            // An empty write waits until the connection is writable.
            self.half.stream.poll_write_ready(context).map_ok(|()| 0)
        } else {
            retry_until_ready(
                context,
                TcpStream::poll_write_ready,
                &self.half.stream,
                || self.half.stream.try_write(chunk),
            )
        };
        match outcome {
            Poll::Ready(Ok(length)) => {
                self.tcp_usage.count_bytes(length)?;
                source.mark_read(length);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => {
                report_end(&mut self.end_sender, Err(error.into()));
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
        let _closed = shutdown(&self.half.stream, Shutdown::Write);
        report_end(&mut self.end_sender, Ok(()));
    }
}

/// Producer of the data that a guest receives.
pub(super) struct SocketReceiver {
    half: SocketHalf,
    tcp_usage: Arc<TcpTraffic>,
    end_sender: Option<SocketStreamEnd>,
    chunk_counter: ChunkCounter,
}

impl SocketReceiver {
    pub(super) fn new(
        half: SocketHalf,
        traffic: Arc<TcpTraffic>,
        end_sender: SocketStreamEnd,
    ) -> Self {
        Self {
            half,
            tcp_usage: traffic,
            end_sender: Some(end_sender),
            chunk_counter: ChunkCounter::default(),
        }
    }
}

impl StreamProducer<StoreState> for SocketReceiver {
    type Item = u8;
    type Buffer = Bytes;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, StoreState>,
        destination: Destination<'a, u8, Bytes>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if !finish && self.chunk_counter.should_yield(context) {
            return Poll::Pending;
        }
        let capacity = destination
            .remaining(&mut store)
            .unwrap_or(MAX_CHUNK_BYTES)
            .min(MAX_CHUNK_BYTES);
        let mut chunk = vec![0; capacity];
        let outcome = if capacity == 0 {
            // An empty read waits until the connection is readable.
            self.half.stream.poll_read_ready(context).map_ok(|()| 0)
        } else {
            retry_until_ready(
                context,
                TcpStream::poll_read_ready,
                &self.half.stream,
                || self.half.stream.try_read(&mut chunk),
            )
        };
        match outcome {
            Poll::Ready(Ok(_)) if capacity == 0 => Poll::Ready(Ok(StreamResult::Completed)),
            Poll::Ready(Ok(0)) => {
                report_end(&mut self.end_sender, Ok(()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Poll::Ready(Ok(length)) => {
                self.tcp_usage.count_bytes(length)?;
                write_chunk(destination, store, chunk.get(..length).unwrap_or_default());
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => {
                report_end(&mut self.end_sender, Err(error.into()));
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
        let _closed = shutdown(&self.half.stream, Shutdown::Read);
        report_end(&mut self.end_sender, Ok(()));
    }
}

fn report_end(end_sender: &mut Option<SocketStreamEnd>, result: Result<(), ErrorCode>) {
    if let Some(sender) = end_sender.take() {
        drop(sender.send(result));
    }
}

/// Retries until the operation succeeds, fails or must wait.
fn retry_until_ready(
    context: &mut Context<'_>,
    is_ready: impl Fn(&TcpStream, &mut Context<'_>) -> Poll<io::Result<()>>,
    stream: &TcpStream,
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                ready!(is_ready(stream, context))?;
            }
            finished => return Poll::Ready(finished),
        }
    }
}
