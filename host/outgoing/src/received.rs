//! The body of a response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::DropGuard;

use crate::cause;
use crate::deadline::earliest;
use crate::error::SendError;
use crate::exchange::UploadState;
use crate::field;
use crate::meter::RequestMeter;
use crate::pool::ConnectionLease;

/// The body of a response, as fast as it is read. It counts its bytes, ends with an error after a silence or at the
/// deadline, and never passes a truncated body off as a whole one.
///
/// Dropping it gives up what is left of the response, and of a request that is still being sent.
pub struct ResponseBody {
    incoming: Incoming,
    /// `None` once the body has ended.
    lease: Option<ConnectionLease>,
    /// The length that the response declares, and what has come of it.
    declared: Option<u64>,
    so_far: u64,
    meter: Arc<RequestMeter>,
    exchange: Arc<UploadState>,
    between_bytes: Duration,
    deadline: Instant,
    /// Runs while somebody waits.
    silence: Pin<Box<Sleep>>,
    waiting: bool,
    _request: DropGuard,
}

/// What a response is received with.
pub(crate) struct ResponseContext {
    pub(crate) lease: ConnectionLease,
    pub(crate) declared: Option<u64>,
    pub(crate) meter: Arc<RequestMeter>,
    pub(crate) exchange: Arc<UploadState>,
    pub(crate) between_bytes: Duration,
    pub(crate) deadline: Instant,
    /// Ends the rest of the request.
    pub(crate) request: DropGuard,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, receipt: ResponseContext) -> Self {
        let ResponseContext { lease, declared, meter, exchange, between_bytes, deadline, request } = receipt;
        let mut received = Self {
            incoming,
            lease: Some(lease),
            declared,
            so_far: 0,
            meter,
            exchange,
            between_bytes,
            deadline,
            silence: Box::pin(sleep_until(deadline)),
            waiting: false,
            _request: request,
        };
        if received.incoming.is_end_stream() {
            received.complete();
        }
        received
    }

    /// The connection can be used again.
    fn complete(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.complete(&self.exchange);
        }
    }

    /// The connection is closed, or its stream is.
    fn fail(&mut self, error: SendError) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        self.lease = None;
        Poll::Ready(Some(Err(error)))
    }

    fn incomplete(&self) -> SendError {
        let declared = self.declared.map_or_else(|| "no".to_owned(), |declared| declared.to_string());
        SendError::Incomplete(format!("received {} bytes, declared {declared}", self.so_far))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        if Instant::now() >= self.deadline {
            return self.fail(SendError::Deadline);
        }
        let mut polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_pending()
            && let Some(lease) = &self.lease
        {
            lease.advance(cx);
            polled = Pin::new(&mut self.incoming).poll_frame(cx);
        }
        let frame = match polled {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if !self.waiting {
                    let until = earliest(self.between_bytes, self.deadline);
                    self.silence.as_mut().reset(until);
                    self.waiting = true;
                }
                ready!(self.silence.as_mut().poll(cx));
                let late = Instant::now() >= self.deadline;
                return self.fail(if late { SendError::Deadline } else { SendError::BetweenBytesTimeout });
            }
        };
        self.waiting = false;
        let closed = self.lease.as_ref().is_some_and(ConnectionLease::is_closed);
        match frame {
            Some(Ok(mut frame)) => {
                let bytes = match frame.trailers_mut() {
                    Some(fields) => {
                        field::remove_hop_by_hop(fields);
                        field::bytes(fields)
                    }
                    None => frame.data_ref().map_or(0, Bytes::len),
                };
                if let Err(which) = self.meter.count(bytes) {
                    return self.fail(which.into());
                }
                if frame.is_data() {
                    self.so_far = self.so_far.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
                }
                if self.incoming.is_end_stream() {
                    self.complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(_)) if closed => self.fail(closed_here()),
            Some(Err(error)) => {
                let error = match cause::of_hyper(&error, true) {
                    // HTTP/2 compares the lengths itself, and says no more than this.
                    SendError::Protocol(_) if self.declared.is_some_and(|declared| declared != self.so_far) => {
                        self.incomplete()
                    }
                    error => self.exchange.fault_or(error),
                };
                self.fail(error)
            }
            // hyper ends the body of a connection that is dropped as if it were complete.
            None if self.declared.is_some_and(|declared| declared != self.so_far) => {
                let error = self.incomplete();
                self.fail(error)
            }
            None if closed => self.fail(closed_here()),
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
        if self.lease.is_some() { self.incoming.size_hint() } else { SizeHint::with_exact(0) }
    }
}

fn closed_here() -> SendError {
    SendError::Reset("the connection was closed from here".to_owned())
}
