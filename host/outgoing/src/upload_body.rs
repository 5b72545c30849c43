//! Request bodies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::error::SendError;
use crate::header_fields;
use crate::request_meter::RequestMeter;
use crate::upload_state::UploadState;

/// Maximum number of empty frames that are skipped at once to find the next frame.
const MAX_EMPTY_FRAMES: usize = 64;

/// An error of the guest's body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The guest's body. Counts its bytes, and checks the length that its request declares.
pub(crate) struct UploadBody {
    guest: UnsyncBoxBody<Bytes, BoxError>,
    /// The length that the request declares, and the remaining part of it.
    declared: Option<DeclaredLength>,
    /// A frame that was read ahead.
    read_ahead: Option<Frame<Bytes>>,
    ended: bool,
    meter: Arc<RequestMeter>,
    state: Arc<UploadState>,
    /// Ready when no caller waits for the response any more.
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

#[derive(Clone, Copy, Debug)]
struct DeclaredLength {
    length: u64,
    remaining: u64,
}

impl UploadBody {
    /// Creates the body of a request that declares this length, if any.
    pub(crate) fn new<B>(
        guest: B,
        length: Option<u64>,
        meter: Arc<RequestMeter>,
        state: Arc<UploadState>,
        cancel: CancellationToken,
    ) -> Result<Self, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let hint = guest.size_hint();
        if let Some(length) = length
            && (hint.lower() > length || hint.upper().is_some_and(|upper| upper < length))
        {
            return Err(SendError::RequestBodyLength(length));
        }
        let declared = length.map(|length| DeclaredLength {
            length,
            remaining: length,
        });
        let guest = guest.map_err(Into::into).boxed_unsync();
        let cancelled = Box::pin(cancel.cancelled_owned());
        Ok(Self {
            guest,
            declared,
            read_ahead: None,
            ended: false,
            meter,
            state,
            cancelled,
        })
    }

    /// Counts a frame, and returns an error if it exceeds a limit or the declared length.
    fn count_frame(&mut self, frame: &mut Frame<Bytes>) -> Result<(), SendError> {
        if let Some(fields) = frame.trailers_mut() {
            header_fields::remove_hop_by_hop(fields);
            return Ok(self
                .meter
                .count_bytes(header_fields::encoded_bytes(fields))?);
        }
        let length = frame.data_ref().map_or(0, Bytes::len);
        if let Some(declared) = &mut self.declared {
            declared.remaining = u64::try_from(length)
                .ok()
                .and_then(|length| declared.remaining.checked_sub(length))
                .ok_or(SendError::RequestBodyLength(declared.length))?;
        }
        Ok(self.meter.count_bytes(length)?)
    }

    /// Polls the guest's next frame and counts it. Returns `None` at a proper end.
    fn poll_guest(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        let taken = match Pin::new(&mut self.guest).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(mut frame))) => Some(self.count_frame(&mut frame).map(|()| frame)),
            Poll::Ready(Some(Err(error))) => Some(Err(SendError::RequestBody(error.to_string()))),
            Poll::Ready(None) => {
                self.ended = true;
                let short = self.declared.filter(|declared| declared.remaining > 0);
                short.map(|declared| Err(SendError::RequestBodyLength(declared.length)))
            }
        };
        Poll::Ready(taken)
    }

    fn fail(&mut self, error: SendError) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        self.ended = true;
        self.state.fail(error.clone());
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if self.cancelled.as_mut().poll(cx).is_ready() {
            return self.fail(SendError::Reset("the response was abandoned".to_owned()));
        }
        if let Some(frame) = self.read_ahead.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = match self.poll_guest(cx) {
            Poll::Pending => {
                self.state.wait_for_guest();
                return Poll::Pending;
            }
            Poll::Ready(taken) => {
                self.state.wait_for_server();
                match taken {
                    None => return Poll::Ready(None),
                    Some(Err(error)) => return self.fail(error),
                    Some(Ok(frame)) => frame,
                }
            }
        };
        // The server considers the request complete with the last declared byte, and hyper reads no
        // further. If the guest has already written too much, the request fails before that byte is
        // sent.
        if self
            .declared
            .is_some_and(|declared| declared.remaining == 0)
            && frame.is_data()
        {
            for _ in 0..MAX_EMPTY_FRAMES {
                match self.poll_guest(cx) {
                    Poll::Pending | Poll::Ready(None) => break,
                    Poll::Ready(Some(Ok(next))) if next.is_data() => {}
                    Poll::Ready(Some(Ok(next))) => {
                        self.read_ahead = Some(next);
                        break;
                    }
                    Poll::Ready(Some(Err(error))) => return self.fail(error),
                }
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        let complete = self.declared.is_none_or(|declared| declared.remaining == 0);
        self.read_ahead.is_none() && (self.ended || (complete && self.guest.is_end_stream()))
    }

    fn size_hint(&self) -> SizeHint {
        match (self.declared, &self.read_ahead) {
            (Some(declared), None) => SizeHint::with_exact(declared.remaining),
            (_, None) => self.guest.size_hint(),
            (_, Some(_)) => SizeHint::default(),
        }
    }
}

/// hyper drops a body when it needs nothing more from it.
impl Drop for UploadBody {
    fn drop(&mut self) {
        self.state.wait_for_server();
        self.state.set_sent();
    }
}
