//! HTTP/1.1 and HTTP/2 on one connection.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cause;
use crate::connector::NegotiatedTransport;
use crate::error::SendError;
use crate::field::{FIELDS, HEAD};
use crate::sockets::SocketReservation;
use crate::upload::UploadBody;
use crate::wire::{MeteredTransport, ReadAllowance};
use crate::work::{ConnectionDriver, DriverLease, beside};

/// Maximum number of concurrent requests on an HTTP/2 connection. If the server allows fewer, the
/// other requests wait in the connection.
pub(crate) const STREAMS: usize = 16;
/// Size of the flow-control window of a stream, in bytes: the part of a response that is received
/// before it is read.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Size of the flow-control window of a connection, in bytes. It covers all streams, so an unread
/// stream never blocks the others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * 16;
/// Maximum size of the part of a request body that waits to be written, in bytes.
const SEND_BUFFER: usize = 128 * 1024;
/// Maximum number of streams that a server can reset, or cause the client to reset, before its
/// connection is closed. An attack resets thousands of them.
const RESETS: usize = 64;
/// Timeout for a connection that should be idle. If it is exceeded, the connection is still sending
/// its last request.
const SETTLE: Duration = Duration::from_millis(50);
/// Maximum number of bytes that a server can send before the body of a response: its head and
/// interim responses.
const BEFORE_BODY: usize = 2 * HEAD;

/// The permit of a connection within the limit of its plugin, and the reservation for its socket.
/// Both are released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    permit: Option<OwnedSemaphorePermit>,
    room: Option<SocketReservation>,
    changed: Arc<Notify>,
}

impl ConnectionSlot {
    pub(crate) fn new(permit: OwnedSemaphorePermit, changed: Arc<Notify>) -> Self {
        Self { permit: Some(permit), room: None, changed }
    }

    /// Adds the reservation for the socket.
    pub(crate) fn with(mut self, room: SocketReservation) -> Self {
        self.room = Some(room);
        self
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.room = None;
        self.permit = None;
        self.changed.notify_waiters();
    }
}

/// Executor for the tasks of one connection. All of them end with the connection, and each holds
/// the connection's slot until then.
#[derive(Clone)]
pub(crate) struct ConnectionTasks {
    /// Closes the connection locally.
    pub(crate) close: CancellationToken,
    /// Cancelled when the connection has ended, no matter which side closed it.
    pub(crate) ended: CancellationToken,
    slot: Arc<ConnectionSlot>,
}

impl ConnectionTasks {
    pub(crate) fn new(close: CancellationToken, slot: ConnectionSlot) -> Self {
        Self { ended: close.child_token(), close, slot: Arc::new(slot) }
    }
}

impl<F> Executor<F> for ConnectionTasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let Self { ended, slot, .. } = self.clone();
        tokio::spawn(async move {
            ended.run_until_cancelled(task).await;
            drop(slot);
        });
    }
}

/// The sender of requests on a connection.
#[derive(Debug)]
pub(crate) enum RequestSender {
    Http1(http1::SendRequest<UploadBody>),
    Http2(http2::SendRequest<UploadBody>),
}

impl RequestSender {
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Waits briefly, and returns whether the connection accepts a request.
    pub(crate) async fn ready(&mut self, loan: Option<&DriverLease>) -> bool {
        match self {
            Self::Http1(sender) => matches!(timeout(SETTLE, beside(loan, sender.ready())).await, Ok(Ok(()))),
            Self::Http2(sender) => sender.is_ready(),
        }
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<UploadBody>>> {
        match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        }
    }
}

/// An established HTTP connection.
pub(crate) struct HttpConnection {
    pub(crate) sender: RequestSender,
    pub(crate) allowance: ReadAllowance,
    /// The future that must be polled for the connection to make progress. It ends with the
    /// connection.
    pub(crate) work: Arc<ConnectionDriver>,
}

/// Performs the HTTP handshake on a transport.
pub(crate) async fn establish(
    connected: NegotiatedTransport,
    tasks: &ConnectionTasks,
) -> Result<HttpConnection, SendError> {
    let allowance = ReadAllowance::unlimited();
    let io = TokioIo::new(MeteredTransport::new(connected.transport, allowance.clone()));
    let failed = |error: hyper::Error| cause::of_hyper(&error, false);
    if connected.http2 {
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .adaptive_window(false)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
            .max_send_buf_size(SEND_BUFFER)
            .initial_max_send_streams(STREAMS)
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(RESETS)
            .handshake(io)
            .await
            .map_err(failed)?;
        // Requests also receive the error.
        let work = ConnectionDriver::new(async { drop(connection.await) });
        Ok(HttpConnection { sender: RequestSender::Http2(sender), allowance, work })
    } else {
        let (sender, connection) = http1::Builder::new()
            .max_headers(FIELDS)
            .max_header_size(HEAD)
            .max_buf_size(HEAD)
            .handshake(io)
            .await
            .map_err(failed)?;
        let work = ConnectionDriver::new(async { drop(connection.await) });
        Ok(HttpConnection { sender: RequestSender::Http1(sender), allowance, work })
    }
}

/// Limits the bytes before the body of the next response. HTTP/2 interleaves several responses, and
/// limits each head itself.
pub(crate) fn expect_head(sender: &RequestSender, allowance: &ReadAllowance) {
    if !sender.is_http2() {
        allowance.set(BEFORE_BODY);
    }
}
