//! What a tape has recorded: with its secrets, until it is asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolbay_recording::{Answer, Answers, Blob, HttpAnswer, HttpError, Missing, Operation, Room};
use toolbay_secrets::Secrets;

/// What kind of operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An HTTP request.
    Http,
    /// An operation with state.
    State,
}

/// An operation whose result may not be known yet.
pub(super) struct Unfinished {
    pub(super) kind: Kind,
    pub(super) what: String,
    pub(super) result: Option<Vec<u8>>,
    /// Bytes that were taken for it already.
    pub(super) held: usize,
}

/// What a tape has recorded.
pub struct Taped {
    pub(super) answers: Answers,
    pub(super) operations: Vec<Unfinished>,
    pub(super) missing: BTreeSet<Missing>,
    pub(super) room: Option<Room>,
    pub(super) secrets: Arc<Secrets>,
}

impl Taped {
    /// Takes room for so many bytes that are recorded beside this. If there is none, only the outline of the call is kept.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self.room.as_mut().is_some_and(|room| room.take(bytes));
        if !taken {
            self.missing.insert(Missing::TooLarge);
        }
        taken
    }

    /// What it takes until it is written; `None` if there was no room.
    pub fn room(&mut self) -> Option<Room> {
        self.room.take()
    }

    /// The secrets that nothing in a recording of the call may contain.
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    /// The answers without secrets, and what is missing. Takes time in proportion to their size.
    pub fn answers(self) -> (Answers, BTreeSet<Missing>) {
        let Self { mut answers, operations, mut missing, secrets, .. } = self;
        answers.trace.retain(|_, value| !secrets.are_in(value.as_bytes()));
        for Unfinished { kind, what, result, .. } in operations {
            // A response that the guest never asked for is as good as none.
            let answer = match (kind, result) {
                (Kind::Http, None) => Some(Answer::Http(HttpAnswer::Nothing(HttpError::HttpResponseIncomplete))),
                (Kind::Http, Some(result)) => postcard::from_bytes::<HttpAnswer>(&result).ok().and_then(|answer| {
                    let public = public(answer.clone(), &secrets)?;
                    answers.redacted |= public != answer;
                    Some(Answer::Http(public))
                }),
                (Kind::State, None) => {
                    missing.insert(Missing::Unfinished);
                    continue;
                }
                (Kind::State, Some(result)) => (!secrets.are_in(&result)).then_some(Answer::State(Blob(result))),
            };
            match answer {
                Some(answer) => answers.operations.push(Operation { what, answer }),
                None => drop(missing.insert(Missing::Secret)),
            }
        }
        (answers, missing)
    }
}

/// An answer without secrets; `None` if they cannot be redacted.
fn public(answer: HttpAnswer, secrets: &Secrets) -> Option<HttpAnswer> {
    let redacted = |blob: Blob| {
        if !secrets.are_in(&blob.0) {
            return Some(blob);
        }
        let text = String::from_utf8(blob.0).ok()?;
        let text = secrets.redact(&text).into_owned();
        (!secrets.are_in(text.as_bytes())).then(|| Blob(text.into_bytes()))
    };
    Some(match answer {
        HttpAnswer::Response { status, fields, body, pieces, end } => {
            let fields = fields.into_iter().map(|(name, value)| Some((name, redacted(value)?)));
            let mut fields: Vec<_> = fields.collect::<Option<_>>()?;
            let before = body.0.len();
            let body = redacted(body)?;
            if body.0.len() == before {
                return Some(HttpAnswer::Response { status, fields, body, pieces, end });
            }
            // What was redacted comes in one piece, and has another length.
            for (_, length) in fields.iter_mut().filter(|(name, _)| name == "content-length") {
                *length = Blob(body.0.len().to_string().into_bytes());
            }
            HttpAnswer::Response { status, fields, body, pieces: Vec::new(), end }
        }
        HttpAnswer::Nothing(HttpError::InternalError(why)) => {
            HttpAnswer::Nothing(HttpError::InternalError(secrets.redact(&why).into_owned()))
        }
        nothing @ HttpAnswer::Nothing(_) => nothing,
    })
}
