//! Observation of responses: tracing, recording, and memory.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use toolbay_model::ByteReservation;
use toolbay_outgoing::{ResponseBody, SendError};
use wasmtime_wasi_http::{Error, WasiBody};

use super::error_codes::{code, recordable_error};
use super::request_span::RequestSpan;
use super::response_recorder::{self, ResponseRecorder};
use crate::capability::effects::{EffectNumber, SideEffects};
use crate::capability::http::memory_bounds::FIELDS_MEMORY_BYTES;
use crate::capability::memory_budget::MemoryBudget;

/// The observer of a request whose response has not arrived yet.
pub(super) struct ResponseObserver {
    pub(super) span: Option<RequestSpan>,
    pub(super) effects: SideEffects,
    /// The number of the request in the recording.
    pub(super) number: EffectNumber,
    pub(super) trailer_budget: Option<MemoryBudget>,
    pub(super) reservation: Option<ByteReservation>,
}

impl ResponseObserver {
    /// Observes a response while the guest reads it.
    pub(super) fn observe(mut self, response: Response<ResponseBody>) -> Response<WasiBody> {
        let (parts, body) = response.into_parts();
        if let Some(span) = &mut self.span {
            span.record_status(parts.status.as_u16());
        }
        let body = ObservedBody::new(
            body,
            ResponseRecorder::start(self.effects, self.number, &parts),
            self.span,
            self.trailer_budget,
            self.reservation,
        );
        Response::from_parts(parts, body.boxed_unsync())
    }

    /// Observes that there is no response.
    pub(super) fn record_failure(mut self, error: &SendError) {
        if let Some(span) = &mut self.span {
            span.record_error(error);
        }
        response_recorder::record_failure(&self.effects, self.number, recordable_error(error));
    }
}

/// The body of a response, as the guest reads it. Dropping it ends the request.
pub(super) struct ObservedBody<B> {
    // Dropped in this order: the recording ends before the request is cancelled.
    recorder: Option<ResponseRecorder>,
    body: B,
    span: Option<RequestSpan>,
    /// The budget to which trailers are charged until the call ends, because they become fields.
    trailer_budget: Option<MemoryBudget>,
    _reservation: Option<ByteReservation>,
}

impl<B: Body> ObservedBody<B> {
    pub(super) fn new(
        body: B,
        recorder: Option<ResponseRecorder>,
        span: Option<RequestSpan>,
        trailer_budget: Option<MemoryBudget>,
        reservation: Option<ByteReservation>,
    ) -> Self {
        let mut observed = Self {
            recorder,
            body,
            span,
            trailer_budget,
            _reservation: reservation,
        };
        if let Some(recorder) = &mut observed.recorder
            && observed.body.is_end_stream()
        {
            recorder.finish(None);
        }
        observed
    }
}

impl<B: Body<Data = Bytes, Error = SendError>> ObservedBody<B> {
    fn observe_frame(&mut self, frame: &Frame<Bytes>) -> Result<(), Error> {
        if let Some(recorder) = &mut self.recorder {
            match frame.data_ref() {
                Some(data) => recorder.add(data),
                None => recorder.mark_trailers(),
            }
            if self.body.is_end_stream() {
                recorder.finish(None);
            }
        }
        if frame.is_trailers()
            && let Some(budget) = &self.trailer_budget
            && budget.charge(FIELDS_MEMORY_BYTES).is_err()
        {
            let why = Some("the call has no memory left for the trailers".to_owned());
            return Err(Error::InternalError(why));
        }
        Ok(())
    }

    /// Observes the error that ended the body. In a replay, the guest receives the same error here.
    fn observe_error(&mut self, error: &SendError) {
        if let Some(span) = &mut self.span {
            span.record_error(error);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(Some(recordable_error(error)));
        }
    }

    fn observe_end(&mut self) {
        // The span ends with the body, not when the guest drops the rest.
        self.span = None;
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(None);
        }
    }
}

impl<B: Body<Data = Bytes, Error = SendError> + Unpin> Body for ObservedBody<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => Some(self.observe_frame(&frame).map(|()| frame)),
            Some(Err(error)) => {
                self.observe_error(&error);
                Some(Err(code(&error)))
            }
            None => {
                self.observe_end();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
