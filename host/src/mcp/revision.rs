//! The revisions of MCP that are served, and what each has: the one table of differences.

use std::fmt;

/// A dated revision of the specification.
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
    /// 2026-07-28: every request says by itself what it follows.
    V2026_07_28,
}

impl Revision {
    /// Every revision served, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest.
    pub const LATEST: Self = Self::V2026_07_28;

    /// What a peer is offered that asks for a session by a revision that has none, or that is not served.
    pub const LATEST_SESSION: Self = Self::V2025_11_25;

    /// The revision with this date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// The date of every revision served, newest first.
    pub fn dates() -> Vec<&'static str> {
        Self::ALL.iter().rev().map(|revision| revision.as_str()).collect()
    }

    /// Its date.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Requests that stand for themselves, instead of sessions that begin with `initialize`.
    pub fn stateless(self) -> bool {
        self >= Self::V2026_07_28
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

    /// Icons; errors may have no id.
    pub fn icons(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether arguments that do not fit the schema are a result with `isError` (SEP-1303) or a protocol error.
    pub fn bad_arguments_are_results(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Output schemas and structured content of any JSON type, not of objects alone.
    pub fn any_structure(self) -> bool {
        self >= Self::V2026_07_28
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
        assert_eq!(Revision::dates().first(), Some(&Revision::LATEST.as_str()));
    }

    #[test]
    fn sessions_end_where_statelessness_begins() {
        assert!(!Revision::LATEST_SESSION.stateless());
        let stateless: Vec<Revision> = Revision::ALL.into_iter().filter(|revision| revision.stateless()).collect();
        assert_eq!(stateless, [Revision::LATEST]);
    }
}
