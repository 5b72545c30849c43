//! Recording of HTTP responses, while the guest reads them, for their
//! [replay](super::replayed_response).

use bytes::Bytes;
use http::response::Parts;
use toolbay_recording::{BinaryText, HttpAnswer, HttpError, MissingInput};

use crate::capability::effects::{EffectNumber, SideEffects};

/// The recorder of a response. Dropping it records that the guest dropped the body before its end.
pub(super) struct ResponseRecorder {
    effects: SideEffects,
    number: EffectNumber,
    /// The response so far, or `None` once it was recorded or did not fit into the recording.
    response: Option<PartialResponse>,
}

struct PartialResponse {
    status: u16,
    fields: Vec<(String, BinaryText)>,
    body: Vec<u8>,
    pieces: Vec<u32>,
}

impl ResponseRecorder {
    /// Starts to record a response. Returns `None` if it is not recorded.
    pub(super) fn start(effects: SideEffects, number: EffectNumber, head: &Parts) -> Option<Self> {
        if !number.is_recorded() {
            return None;
        }
        let fields = head.headers.iter().map(|(name, value)| {
            (
                name.as_str().to_owned(),
                BinaryText(value.as_bytes().to_vec()),
            )
        });
        Some(Self {
            effects,
            number,
            response: Some(PartialResponse {
                status: head.status.as_u16(),
                fields: fields.collect(),
                body: Vec::new(),
                pieces: Vec::new(),
            }),
        })
    }

    /// Adds a chunk to the recording.
    pub(super) fn add(&mut self, piece: &Bytes) {
        let Some(response) = &mut self.response else {
            return;
        };
        response.body.extend_from_slice(piece);
        response
            .pieces
            .push(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        let size = response.body.len();
        if !self
            .effects
            .try_grow(self.number, piece.len() + size_of::<u32>(), size)
        {
            // The response does not fit into the recording, and `try_grow` has noted that. Stop
            // recording it.
            self.finish(Some(HttpError::HttpResponseIncomplete));
        }
    }

    /// Marks that the response has trailers, which are not recorded.
    pub(super) fn mark_trailers(&self) {
        if self.response.is_some() {
            self.effects.mark_unsupported(MissingInput::Trailers);
        }
    }

    /// Records the response. `end` is the error that ended the body, or `None` if it is complete.
    pub(super) fn finish(&mut self, end: Option<HttpError>) {
        if let Some(PartialResponse {
            status,
            fields,
            body,
            pieces,
        }) = self.response.take()
        {
            let answer = HttpAnswer::Response {
                status,
                fields,
                body: BinaryText(body),
                pieces,
                end,
            };
            record_answer(&self.effects, self.number, &answer);
        }
    }
}

/// The guest drops the body before its end.
impl Drop for ResponseRecorder {
    fn drop(&mut self) {
        self.finish(Some(HttpError::HttpResponseIncomplete));
    }
}

/// Records that there was no response.
pub(super) fn record_failure(effects: &SideEffects, number: EffectNumber, why: HttpError) {
    if number.is_recorded() {
        record_answer(effects, number, &HttpAnswer::Failed(why));
    }
}

fn record_answer(effects: &SideEffects, number: EffectNumber, answer: &HttpAnswer) {
    // If encoding fails, the response counts as too large, and the call can no longer ask a
    // question.
    effects.end(
        number,
        postcard::to_allocvec(answer).unwrap_or_else(|_| vec![0; effects.remaining_bytes() + 1]),
    );
}
