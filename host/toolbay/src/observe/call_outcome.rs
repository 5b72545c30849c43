//! The outcome of a call as one word, for the audit log and metrics.

use toolbay_model::{CallError, CallFailure, CallReply, CallResult, ErrorKind};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeLabel {
    /// The call succeeded.
    Ok,
    /// The call ended with a question to its caller.
    InputRequired,
    /// The call failed.
    Failed(ErrorKind),
}

impl OutcomeLabel {
    /// The number of outcomes.
    pub(crate) const COUNT: usize = ErrorKind::ALL.len() + 2;

    /// Every outcome, in the order of [`OutcomeLabel::index`].
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Self::Ok, Self::InputRequired]
            .into_iter()
            .chain(ErrorKind::ALL.map(Self::Failed))
    }

    /// Returns the outcome of a call with this answer.
    pub(crate) fn from_answer(answer: &CallResult) -> Self {
        match &answer.result {
            Ok(CallReply::Questions(_)) => Self::InputRequired,
            Ok(_) => Self::Ok,
            Err(failure) => Self::Failed(failure.kind()),
        }
    }

    /// Returns the position among all outcomes.
    pub(crate) fn index(self) -> usize {
        Self::all()
            .position(|known| known == self)
            .unwrap_or_default()
    }

    /// Returns the word for the outcome.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InputRequired => "input-required",
            Self::Failed(kind) => kind.as_str(),
        }
    }
}

/// Returns the key that raises the limit because of which a call failed. Returns `None` if no limit
/// made it fail.
pub(crate) fn limit_key(answer: &CallResult) -> Option<&'static str> {
    match &answer.result {
        Err(CallFailure::Call(CallError::Limit { limit, .. })) => Some(limit.key()),
        Err(CallFailure::Rejected(rejection)) => rejection.reason.key(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_place_and_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> =
            OutcomeLabel::all().map(OutcomeLabel::as_str).collect();
        assert_eq!(
            (words.len(), OutcomeLabel::all().count()),
            (OutcomeLabel::COUNT, OutcomeLabel::COUNT)
        );
        assert!(
            OutcomeLabel::all()
                .enumerate()
                .all(|(place, outcome)| outcome.index() == place)
        );
    }
}
