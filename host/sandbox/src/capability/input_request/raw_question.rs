//! Questions of plugins before they are checked.

/// A question as the contract represents it, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct RawQuestion {
    pub(crate) key: String,
    pub(crate) kind: RawQuestionKind,
    /// The parameters, a JSON object as text.
    pub(crate) params: String,
    /// True if the call cannot continue without an answer.
    pub(crate) is_required: bool,
}

/// The kind of a question, as the contract represents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawQuestionKind {
    Form,
    Url,
    Sampling,
    Roots,
}

/// The reason why questions cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuestionRefusal {
    /// The client does not support this kind.
    Unsupported(String),
    /// The questions are invalid.
    Invalid(String),
}
