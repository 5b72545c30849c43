//! The two parts of a log. Events that clients can cause at will have separate files, so that they
//! do not displace other events.

/// A part of a log: a chain with separate files, retention and head. Both parts share one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Plugins, operators, approvals and admitted calls.
    Main,
    /// Rejected calls, denials and limits.
    Rejected,
}

impl LogPart {
    /// Both parts, in the order in which they are verified.
    pub(crate) const ALL: [Self; 2] = [Self::Main, Self::Rejected];

    /// Returns the name of the part, which is the prefix of its file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "audit",
            Self::Rejected => "rejected",
        }
    }

    /// Returns the noun for messages.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Main => "the log",
            Self::Rejected => "the log of rejections",
        }
    }

    /// Returns the name of the head file.
    pub(crate) const fn head_file_name(self) -> &'static str {
        match self {
            Self::Main => "head",
            Self::Rejected => "rejected-head",
        }
    }
}
