//! `approve`: which calls of a tool a person must allow first, as the operator writes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolbay_model::Annotations;
use toolbay_settings::toml_file::nearest;

/// Which calls of a tool a person must allow first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    /// None.
    #[default]
    Never,
    /// Each one.
    Always,
    /// The first one of a caller.
    First,
    /// Each one of a tool that may destroy something, as its annotations say.
    Destructive,
}

impl Approve {
    const ALL: [Self; 4] = [Self::Always, Self::First, Self::Destructive, Self::Never];

    /// The word in a grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::First => "first",
            Self::Destructive => "destructive",
        }
    }

    /// What asks whenever one of both does.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (one, two) if one == two => one,
            (Self::Never, other) | (other, Self::Never) => other,
            // The first call of a caller, and each one that may destroy something: neither asks more than the other.
            _ => Self::Always,
        }
    }

    /// Which calls of a tool with these annotations a person must allow first; `None` for none of them.
    pub fn of(self, annotations: Option<Annotations>) -> Option<Asks> {
        match self {
            Self::Never => None,
            Self::Always => Some(Asks::Each),
            Self::First => Some(Asks::First),
            Self::Destructive => is_destructive(annotations.unwrap_or_default()).then_some(Asks::Each),
        }
    }
}

/// Whether a tool may destroy something (MCP `ToolAnnotations`). One that says nothing may.
fn is_destructive(annotations: Annotations) -> bool {
    !annotations.read_only.unwrap_or(false) && annotations.destructive.unwrap_or(true)
}

/// The calls of a tool that a person must allow first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Asks {
    /// Each one.
    Each,
    /// The first one of a caller.
    First,
}

/// In words for people.
impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each => "before each call",
            Self::First => "before the first call",
        })
    }
}

impl<'de> Deserialize<'de> for Approve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if let Some(known) = Self::ALL.into_iter().find(|known| known.as_str() == word) {
            return Ok(known);
        }
        let near = nearest(&word, &Self::ALL.map(Self::as_str));
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let wrong = format_args!("expected \"always\", \"first\", \"destructive\" or \"never\", not {word:?}{near}");
        Err(D::Error::custom(wrong))
    }
}

/// What the operator wrote for the tools of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// For the tools that have no word of their own.
    pub default: Approve,
    /// By the tool's name without the prefix.
    pub tools: BTreeMap<String, Approve>,
}

impl Approvals {
    /// What applies to the tool `name` (without the prefix).
    pub fn of(&self, name: &str) -> Approve {
        self.tools.get(name).copied().unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_destructive_unless_its_annotations_say_otherwise() {
        assert_eq!(Approve::Destructive.of(None), Some(Asks::Each));
        for (read_only, destructive, asks) in [
            (None, None, true),
            (Some(false), None, true),
            (None, Some(true), true),
            (None, Some(false), false),
            (Some(true), None, false),
            // What only reads destroys nothing.
            (Some(true), Some(true), false),
        ] {
            let annotations = Some(Annotations { read_only, destructive, ..Annotations::default() });
            assert_eq!(Approve::Destructive.of(annotations), asks.then_some(Asks::Each), "{annotations:?}");
            assert_eq!(Approve::Always.of(annotations), Some(Asks::Each));
            assert_eq!(Approve::First.of(annotations), Some(Asks::First));
            assert_eq!(Approve::Never.of(annotations), None);
        }
    }

    #[test]
    fn the_word_of_a_tool_wins() {
        let tools = BTreeMap::from([("look".to_owned(), Approve::Never)]);
        let approvals = Approvals { default: Approve::Always, tools };
        assert_eq!((approvals.of("look"), approvals.of("erase")), (Approve::Never, Approve::Always));
        assert_eq!(Approvals::default().of("erase"), Approve::Never);
    }
}
