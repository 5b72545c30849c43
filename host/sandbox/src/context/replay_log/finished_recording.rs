//! A finished recording, which contains secrets until its answers are extracted.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolbay_recording::{
    BinaryText, HostAnswers, HostOperation, HttpAnswer, HttpError, MissingInput, OperationResult,
    RecordingReservation,
};
use toolbay_secrets::SecretFilter;

/// Kind of a recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// An HTTP request.
    Http,
    /// A state operation.
    State,
}

/// A recorded operation whose result may be pending.
pub(super) struct UnfinishedOperation {
    pub(super) kind: OperationKind,
    pub(super) description: String,
    pub(super) result: Option<Vec<u8>>,
    /// Bytes already reserved for the result.
    pub(super) reserved_bytes: usize,
}

/// Finished recording of a call.
pub struct TapedCall {
    pub(super) answers: HostAnswers,
    pub(super) operations: Vec<UnfinishedOperation>,
    pub(super) missing: BTreeSet<MissingInput>,
    pub(super) reservation: Option<RecordingReservation>,
    pub(super) secrets: Arc<SecretFilter>,
}

impl TapedCall {
    /// Reserves memory for additional recorded data, and returns whether there was enough. If there
    /// was not, only the outline of the call is recorded.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let is_reserved = self
            .reservation
            .as_mut()
            .is_some_and(|reservation| reservation.try_reserve(bytes));
        if !is_reserved {
            self.missing.insert(MissingInput::TooLarge);
        }
        is_reserved
    }

    /// Takes the memory reservation, which lasts until the recording is written; `None` if it was
    /// exhausted.
    pub fn take_reservation(&mut self) -> Option<RecordingReservation> {
        self.reservation.take()
    }

    /// Returns the secrets that the recording must not contain.
    pub fn secrets(&self) -> &Arc<SecretFilter> {
        &self.secrets
    }

    /// Returns the answers without secrets, and what is missing. Takes time in proportion to their
    /// size.
    pub fn into_answers(self) -> (HostAnswers, BTreeSet<MissingInput>) {
        let Self {
            mut answers,
            operations,
            mut missing,
            secrets,
            ..
        } = self;
        answers
            .trace
            .retain(|_, value| !secrets.contains_secret(value.as_bytes()));
        for UnfinishedOperation {
            kind,
            description: what,
            result,
            ..
        } in operations
        {
            // A response that the guest never read is recorded as incomplete.
            let answer = match (kind, result) {
                (OperationKind::Http, None) => Some(OperationResult::Http(HttpAnswer::Failed(
                    HttpError::HttpResponseIncomplete,
                ))),
                (OperationKind::Http, Some(result)) => postcard::from_bytes::<HttpAnswer>(&result)
                    .ok()
                    .and_then(|answer| {
                        let public = redact_answer(answer.clone(), &secrets)?;
                        answers.redacted |= public != answer;
                        Some(OperationResult::Http(public))
                    }),
                (OperationKind::State, None) => {
                    missing.insert(MissingInput::Unfinished);
                    continue;
                }
                (OperationKind::State, Some(result)) => (!secrets.contains_secret(&result))
                    .then_some(OperationResult::State(BinaryText(result))),
            };
            match answer {
                Some(answer) => answers.operations.push(HostOperation { what, answer }),
                None => drop(missing.insert(MissingInput::Secret)),
            }
        }
        (answers, missing)
    }
}

/// Redacts an answer. Returns `None` if the secrets cannot be redacted.
fn redact_answer(answer: HttpAnswer, secrets: &SecretFilter) -> Option<HttpAnswer> {
    let redacted = |blob: BinaryText| {
        if !secrets.contains_secret(&blob.0) {
            return Some(blob);
        }
        let text = String::from_utf8(blob.0).ok()?;
        let text = secrets.redact(&text).into_owned();
        (!secrets.contains_secret(text.as_bytes())).then(|| BinaryText(text.into_bytes()))
    };
    Some(match answer {
        HttpAnswer::Response {
            status,
            fields,
            body,
            pieces,
            end,
        } => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| Some((name, redacted(value)?)));
            let mut fields: Vec<_> = fields.collect::<Option<_>>()?;
            let before = body.0.len();
            let body = redacted(body)?;
            if body.0.len() == before {
                return Some(HttpAnswer::Response {
                    status,
                    fields,
                    body,
                    pieces,
                    end,
                });
            }
            // A redacted body has a different length and is stored as one chunk.
            for (_, length) in fields
                .iter_mut()
                .filter(|(name, _)| name == "content-length")
            {
                *length = BinaryText(body.0.len().to_string().into_bytes());
            }
            HttpAnswer::Response {
                status,
                fields,
                body,
                pieces: Vec::new(),
                end,
            }
        }
        HttpAnswer::Failed(HttpError::InternalError(why)) => {
            HttpAnswer::Failed(HttpError::InternalError(secrets.redact(&why).into_owned()))
        }
        failure @ HttpAnswer::Failed(_) => failure,
    })
}
