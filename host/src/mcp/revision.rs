//! The revisions of MCP that are served, and what each has: the one table of differences.

use std::fmt;

/// A dated revision of the specification whose sessions begin with `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
}

impl Revision {
    /// Every revision served, oldest first.
    pub const ALL: [Self; 4] = [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// What a peer is offered that asks for a revision that is not served.
    pub const LATEST: Self = Self::V2025_11_25;

    /// The revision with this date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// Its date.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// JSON-RPC batches: added in 2025-03-26 and gone in the next.
    pub fn batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Tool annotations, audio content, and a message with progress.
    pub fn annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Titles, output schemas, structured content, resource links, and `_meta` on tools and content.
    pub fn structured(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Icons; arguments that do not fit are a result for the model; errors may have no id.
    pub fn icons(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether arguments that do not fit the schema are a result with `isError` (SEP-1303) or a protocol error.
    pub fn bad_arguments_are_results(self) -> bool {
        self >= Self::V2025_11_25
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_parses_to_itself() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("2024-10-07"), None);
        assert!(Revision::ALL.is_sorted());
    }
}
