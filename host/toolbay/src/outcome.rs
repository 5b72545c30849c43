//! How a call ended, in one word: for the audit log and for metrics.

use toolbay_model::{Answer, CallError, ErrorKind, Failure, Reply};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Ok,
    /// It ended with a question to its caller.
    Asked,
    /// It failed.
    Failed(ErrorKind),
}

impl Outcome {
    /// How many there are.
    pub(crate) const COUNT: usize = ErrorKind::ALL.len() + 2;

    /// Every outcome, in the order of [`Outcome::index`].
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Self::Ok, Self::Asked].into_iter().chain(ErrorKind::ALL.map(Self::Failed))
    }

    /// How a call with this answer ended.
    pub(crate) fn of(answer: &Answer) -> Self {
        match &answer.result {
            Ok(Reply::Questions(_)) => Self::Asked,
            Ok(_) => Self::Ok,
            Err(failure) => Self::Failed(failure.kind()),
        }
    }

    /// Its place among all.
    pub(crate) fn index(self) -> usize {
        Self::all().position(|known| known == self).unwrap_or_default()
    }

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Asked => "asked",
            Self::Failed(kind) => kind.as_str(),
        }
    }
}

/// The key that raises the limit because of which a call failed; `None` if it did not fail because of one.
pub(crate) fn limit(answer: &Answer) -> Option<&'static str> {
    match &answer.result {
        Err(Failure::Call(CallError::Limit { limit, .. })) => Some(limit.key()),
        Err(Failure::Rejected(rejection)) => rejection.reason.key(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_place_and_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Outcome::all().map(Outcome::as_str).collect();
        assert_eq!((words.len(), Outcome::all().count()), (Outcome::COUNT, Outcome::COUNT));
        assert!(Outcome::all().enumerate().all(|(place, outcome)| outcome.index() == place));
    }
}
