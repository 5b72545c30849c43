//! Last stage: encodes the response of a call, and sends it as soon as there is capacity.

use crate::exchange::in_flight::RegisteredRequest;
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::host::interface::QueuePlace;
use crate::plugin_request::completed_call::{CallResponse, CompletedCall};
use crate::protocol::revision::Revision;
use crate::response::call_response::MISSING_CAPABILITY;
use crate::session::client_session::Session;

/// A call that has ended. Its id stays in use, and the client can still cancel it, until its
/// response is queued.
pub(crate) struct EncodedCall {
    request: RegisteredRequest,
    /// `None` if the client has cancelled the call.
    answer: Option<OutgoingMessage>,
    place: Option<Box<dyn QueuePlace>>,
}

impl EncodedCall {
    /// Creates an ended call from its encoded response. It has no place in the client's queue.
    pub(super) fn new(request: RegisteredRequest, answer: OutgoingMessage) -> Self {
        Self {
            request,
            answer: Some(answer),
            place: None,
        }
    }

    /// Encodes the response of a call.
    pub(super) fn encode(
        session: &Session,
        request: RegisteredRequest,
        completed: CompletedCall,
        revision: Revision,
    ) -> Self {
        let CompletedCall { response, place } = completed;
        let answer = response.map(
            |CallResponse {
                 result,
                 retry_after,
             }| {
                let outgoing = match result {
                    Ok(result) => session.encode_result(&request.id, result, Some(revision)),
                    Err(error) if error.code == MISSING_CAPABILITY => {
                        session.encode_rejection(&error.with_id(&request.id))
                    }
                    Err(error) => {
                        OutgoingMessage::response(session.encode_error(&error.with_id(&request.id)))
                    }
                };
                OutgoingMessage {
                    retry_after,
                    ..outgoing
                }
            },
        );
        Self {
            request,
            answer,
            place,
        }
    }

    /// Reports that the response is encoded, and that nothing more is computed for the call.
    /// `error` is the error code if the response is an error.
    pub(super) fn mark_encoded(&mut self, error: Option<i32>) {
        if let Some(place) = &mut self.place {
            place.response_encoded(error);
        }
    }

    /// Queues the response as soon as there is capacity, unless the client cancels the call before
    /// that. The place in the client's queue is held until then. Returns whether a response was
    /// queued.
    pub(crate) async fn send(self, session: &Session, reply: &Outbox) -> bool {
        let cancelled = self.request.cancelled.clone();
        let bytes = self.bytes();
        let capacity = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            capacity = reply.reserve(bytes) => capacity,
        };
        let (answer, _place) = self.finish(session);
        let (Some(capacity), Some(answer)) = (capacity, answer) else {
            return false;
        };
        capacity.send(answer);
        true
    }

    /// Returns the length of the response, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.text.len())
    }

    /// Frees the id. Returns the response, unless the client has cancelled the call, and the place
    /// in the client's queue. Do not await anything before the response is queued: another request
    /// may already have the id.
    pub(crate) fn finish(
        self,
        session: &Session,
    ) -> (Option<OutgoingMessage>, Option<Box<dyn QueuePlace>>) {
        let Self {
            request,
            answer,
            place,
        } = self;
        let is_wanted = session.in_flight.finish(&request);
        (answer.filter(|_| is_wanted), place)
    }
}
