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

use crate::connection_driver::{ConnectionDriver, DriverLease, drive_while_waiting};
use crate::connector::NegotiatedTransport;
use crate::error::SendError;
use crate::error_classification;
use crate::header_fields::{MAX_HTTP_HEAD_BYTES, MAX_RESPONSE_FIELDS};
use crate::metered_transport::{MeteredTransport, ReadAllowance};
use crate::socket_budget::SocketReservation;
use crate::upload_body::UploadBody;

/// Maximum number of concurrent requests on an HTTP/2 connection. If the server allows fewer, the
/// other requests wait in the connection.
pub(crate) const MAX_CONCURRENT_STREAMS: usize = 16;
/// Size of the flow-control window of a stream, in bytes: the part of a response that is received
/// before it is read.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Size of the flow-control window of a connection, in bytes. It covers all streams, so an unread
/// stream never blocks the others.
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * 16;
/// Maximum size of the part of a request body that waits to be written, in bytes.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
/// Maximum number of streams that a server can reset, or cause the client to reset, before its
/// connection is closed. An attack resets thousands of them.
const MAX_RESET_STREAMS: usize = 64;
/// Timeout for a connection that should be idle. If it is exceeded, the connection is still sending
/// its last request.
const READY_TIMEOUT: Duration = Duration::from_millis(50);
/// Maximum number of bytes that a server can send before the body of a response: its head and
/// interim responses.
const MAX_PREAMBLE_BYTES: usize = 2 * MAX_HTTP_HEAD_BYTES;

/// The permit of a connection within the limit of its plugin, and the reservation for its socket.
/// Both are released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    permit: Option<OwnedSemaphorePermit>,
    socket: Option<SocketReservation>,
    released: Arc<Notify>,
}

impl ConnectionSlot {
    pub(crate) fn new(permit: OwnedSemaphorePermit, changed: Arc<Notify>) -> Self {
        Self {
            permit: Some(permit),
            socket: None,
            released: changed,
        }
    }

    /// Adds the reservation for the socket.
    pub(crate) fn with_socket(mut self, room: SocketReservation) -> Self {
        self.socket = Some(room);
        self
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.socket = None;
        self.permit = None;
        self.released.notify_waiters();
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
        Self {
            ended: close.child_token(),
            close,
            slot: Arc::new(slot),
        }
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
    pub(crate) async fn wait_until_ready(&mut self, loan: Option<&DriverLease>) -> bool {
        match self {
            Self::Http1(sender) => {
                matches!(
                    timeout(READY_TIMEOUT, drive_while_waiting(loan, sender.ready())).await,
                    Ok(Ok(()))
                )
            }
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
    pub(crate) driver: Arc<ConnectionDriver>,
}

/// Performs the HTTP handshake on a transport.
pub(crate) async fn establish(
    connected: NegotiatedTransport,
    tasks: &ConnectionTasks,
) -> Result<HttpConnection, SendError> {
    let allowance = ReadAllowance::unlimited();
    let io = TokioIo::new(MeteredTransport::new(
        connected.transport,
        allowance.clone(),
    ));
    let failed = |error: hyper::Error| error_classification::classify_hyper(&error, false);
    if connected.http2 {
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .adaptive_window(false)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(MAX_HTTP_HEAD_BYTES).unwrap_or(u32::MAX))
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .initial_max_send_streams(MAX_CONCURRENT_STREAMS)
            .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
            .max_local_error_reset_streams(MAX_RESET_STREAMS)
            .handshake(io)
            .await
            .map_err(failed)?;
        // The error is dropped here: the requests on the connection receive it too.
        let work = ConnectionDriver::new(async { drop(connection.await) });
        Ok(HttpConnection {
            sender: RequestSender::Http2(sender),
            allowance,
            driver: work,
        })
    } else {
        let (sender, connection) = http1::Builder::new()
            .max_headers(MAX_RESPONSE_FIELDS)
            .max_header_size(MAX_HTTP_HEAD_BYTES)
            .max_buf_size(MAX_HTTP_HEAD_BYTES)
            .handshake(io)
            .await
            .map_err(failed)?;
        let work = ConnectionDriver::new(async { drop(connection.await) });
        Ok(HttpConnection {
            sender: RequestSender::Http1(sender),
            allowance,
            driver: work,
        })
    }
}

/// Limits the bytes before the body of the next response. HTTP/2 interleaves several responses, and
/// limits each head itself.
pub(crate) fn limit_head(sender: &RequestSender, allowance: &ReadAllowance) {
    if !sender.is_http2() {
        allowance.set(MAX_PREAMBLE_BYTES);
    }
}
