//! The two parts of a log. What clients can cause at will has files of its own, so that it displaces nothing else.

/// A part of a log: a chain with its own files, its own retention and its own head. Both have one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Plugins, operators, approvals and the calls that were let in.
    Main,
    /// Rejected calls, denials and limits.
    Rejected,
}

impl LogPart {
    /// Both, in the order in which they are verified.
    pub(crate) const ALL: [Self; 2] = [Self::Main, Self::Rejected];

    /// The part's name, which the names of its files begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "audit",
            Self::Rejected => "rejected",
        }
    }

    /// What messages call it.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Main => "the log",
            Self::Rejected => "the log of rejections",
        }
    }

    /// Name of the file with its newest line.
    pub(crate) const fn head(self) -> &'static str {
        match self {
            Self::Main => "head",
            Self::Rejected => "rejected-head",
        }
    }
}
