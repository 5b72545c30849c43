//! Who calls, and which tools they may see and call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::host::Client;

/// A client as the host knows it: a name for the log, what it may use, and its share of the server.
#[derive(Clone)]
pub struct Caller {
    /// Such as `stdio`, or the name of a token. Never a secret.
    pub name: String,
    /// The tools it may see and call.
    pub rights: Rights,
    /// Its share of the server.
    pub client: Arc<dyn Client>,
}

/// The tools that a caller may see and call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rights {
    /// Every tool.
    #[default]
    All,
    /// Those that fit one of these.
    Only(Vec<Pattern>),
}

/// Tools by their name: `convert_time`, or `acme.*` for every name that begins so.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    beginning: String,
    exact: bool,
}

impl Caller {
    /// The only client of a process: it may use everything.
    pub fn local(client: Arc<dyn Client>) -> Self {
        Self { name: "stdio".to_owned(), rights: Rights::All, client }
    }

    /// Whether it may see and call the tool with this name.
    pub fn may_use(&self, tool: &str) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Only(patterns) => patterns.iter().any(|pattern| pattern.fits(tool)),
        }
    }
}

impl Pattern {
    /// Whether a tool's name fits.
    pub fn fits(&self, tool: &str) -> bool {
        if self.exact { tool == self.beginning } else { tool.starts_with(&self.beginning) }
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (beginning, exact) = match text.strip_suffix('*') {
            Some(beginning) => (beginning, false),
            None => (text.as_str(), true),
        };
        if beginning.contains('*') || text.is_empty() {
            return Err(format!("{text:?} is not a tool name or a prefix followed by `*`"));
        }
        Ok(Self { beginning: beginning.to_owned(), exact })
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.beginning, if self.exact { "" } else { "*" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_some() {
        let cases =
            [("a", "a", true), ("a", "ab", false), ("a.*", "a.b", true), ("a.*", "ab", false), ("*", "a", true)];
        for (pattern, tool, fits) in cases {
            assert_eq!(Pattern::try_from(pattern.to_owned()).unwrap().fits(tool), fits, "{pattern} {tool}");
        }
        for wrong in ["", "a*b", "**"] {
            assert!(Pattern::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
