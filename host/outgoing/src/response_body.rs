//! Response bodies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::DropGuard;

use crate::deadline::timeout_deadline;
use crate::error::SendError;
use crate::error_classification;
use crate::header_fields;
use crate::pool::ConnectionLease;
use crate::request_meter::RequestMeter;
use crate::upload_state::UploadState;

/// The body of a response, which arrives as fast as it is read. It counts its bytes, ends with an
/// error after a read timeout or at the deadline, and never reports a truncated body as complete.
///
/// Dropping it cancels the rest of the response, and the rest of a request that is still being
/// sent.
pub struct ResponseBody {
    incoming: Incoming,
    /// `None` once the body has ended.
    lease: Option<ConnectionLease>,
    /// The length that the response declares, if any.
    declared: Option<u64>,
    received: u64,
    meter: Arc<RequestMeter>,
    upload: Arc<UploadState>,
    between_bytes: Duration,
    deadline: Instant,
    /// The read timeout. It runs while a reader waits.
    read_timeout: Pin<Box<Sleep>>,
    waiting: bool,
    _request: DropGuard,
}

/// The state that a response body needs.
pub(crate) struct ResponseContext {
    pub(crate) lease: ConnectionLease,
    pub(crate) declared: Option<u64>,
    pub(crate) meter: Arc<RequestMeter>,
    pub(crate) upload: Arc<UploadState>,
    pub(crate) between_bytes: Duration,
    pub(crate) deadline: Instant,
    /// Cancels the rest of the request on drop.
    pub(crate) cancel_request: DropGuard,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, context: ResponseContext) -> Self {
        let ResponseContext {
            lease,
            declared,
            meter,
            upload: exchange,
            between_bytes,
            deadline,
            cancel_request: request,
        } = context;
        let mut received = Self {
            incoming,
            lease: Some(lease),
            declared,
            received: 0,
            meter,
            upload: exchange,
            between_bytes,
            deadline,
            read_timeout: Box::pin(sleep_until(deadline)),
            waiting: false,
            _request: request,
        };
        if received.incoming.is_end_stream() {
            received.complete();
        }
        received
    }

    /// Releases the connection for reuse.
    fn complete(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.complete(&self.upload);
        }
    }

    /// Closes the connection, or its HTTP/2 stream, and returns the error.
    fn fail(&mut self, error: SendError) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        self.lease = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Polls for the next frame. Drives the connection if this response leases its driver.
    fn poll_incoming(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_pending()
            && let Some(lease) = &self.lease
        {
            lease.poll_driver(cx);
            return Pin::new(&mut self.incoming).poll_frame(cx);
        }
        polled
    }

    /// Polls the read timeout, which starts with the first poll after a frame.
    fn poll_read_timeout(&mut self, cx: &mut Context<'_>) -> Poll<SendError> {
        if !self.waiting {
            let until = timeout_deadline(self.between_bytes, self.deadline);
            self.read_timeout.as_mut().reset(until);
            self.waiting = true;
        }
        ready!(self.read_timeout.as_mut().poll(cx));
        Poll::Ready(if Instant::now() >= self.deadline {
            SendError::Deadline
        } else {
            SendError::BetweenBytesTimeout
        })
    }

    /// Counts a frame and returns it to the reader.
    fn receive(
        &mut self,
        mut frame: Frame<Bytes>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let bytes = match frame.trailers_mut() {
            Some(fields) => {
                header_fields::remove_hop_by_hop(fields);
                header_fields::encoded_bytes(fields)
            }
            None => frame.data_ref().map_or(0, Bytes::len),
        };
        if let Err(which) = self.meter.count_bytes(bytes) {
            return self.fail(which.into());
        }
        if frame.is_data() {
            self.received = self
                .received
                .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        if self.incoming.is_end_stream() {
            self.complete();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn classify(&self, error: &hyper::Error) -> SendError {
        match error_classification::classify_hyper(error, true) {
            // HTTP/2 checks the length itself, but reports only a protocol error.
            SendError::Protocol(_) if self.is_incomplete() => self.incomplete(),
            error => self.upload.error_or(error),
        }
    }

    /// Returns whether the received length differs from the declared length.
    fn is_incomplete(&self) -> bool {
        self.declared
            .is_some_and(|declared| declared != self.received)
    }

    fn incomplete(&self) -> SendError {
        let declared = self
            .declared
            .map_or_else(|| "no".to_owned(), |declared| declared.to_string());
        SendError::Incomplete(format!(
            "received {} bytes, declared {declared}",
            self.received
        ))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        if Instant::now() >= self.deadline {
            return self.fail(SendError::Deadline);
        }
        let Poll::Ready(frame) = self.poll_incoming(cx) else {
            let error = ready!(self.poll_read_timeout(cx));
            return self.fail(error);
        };
        self.waiting = false;
        let closed = self
            .lease
            .as_ref()
            .is_some_and(ConnectionLease::is_closed_locally);
        match frame {
            Some(Ok(frame)) => self.receive(frame),
            Some(Err(_)) if closed => self.fail(closed_locally()),
            Some(Err(error)) => {
                let error = self.classify(&error);
                self.fail(error)
            }
            // If a connection is dropped, hyper ends the body as if it were complete.
            None if self.is_incomplete() => {
                let error = self.incomplete();
                self.fail(error)
            }
            None if closed => self.fail(closed_locally()),
            None => {
                self.complete();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.lease.is_some() {
            self.incoming.size_hint()
        } else {
            SizeHint::with_exact(0)
        }
    }
}

fn closed_locally() -> SendError {
    SendError::Reset("the connection was closed locally".to_owned())
}
