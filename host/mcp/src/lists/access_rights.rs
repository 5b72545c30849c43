//! The tools, prompts and resources that a caller may list and use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The tools and prompts, by name, and the resources, by URI, that a caller may list and use.
/// Templates are matched by their text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallerRights {
    /// Everything.
    #[default]
    All,
    /// Only targets that match at least one pattern.
    Only(Vec<NamePattern>),
}

/// A full name or URI such as `convert_time`, or a prefix followed by `*`, such as `acme.*` or
/// `toolbay://notes/*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern {
    prefix: String,
    is_exact: bool,
}

impl CallerRights {
    /// Returns whether the target with this name or URI may be listed and used.
    pub fn allow(&self, target: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| pattern.matches(target)),
        }
    }
}

impl NamePattern {
    /// Returns a sort key for how many targets the pattern can match. A more specific pattern has a
    /// smaller key.
    pub(crate) fn breadth(&self) -> (bool, std::cmp::Reverse<usize>) {
        (!self.is_exact, std::cmp::Reverse(self.prefix.len()))
    }

    /// Returns whether a name or URI matches the pattern.
    pub fn matches(&self, target: &str) -> bool {
        if self.is_exact {
            target == self.prefix
        } else {
            target.starts_with(&self.prefix)
        }
    }
}

impl TryFrom<String> for NamePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (prefix, is_exact) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, false),
            None => (text.as_str(), true),
        };
        if prefix.contains('*') || text.is_empty() {
            return Err(format!(
                "{text:?} is not a name or URI, or the beginning of one followed by `*`"
            ));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            is_exact,
        })
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, if self.is_exact { "" } else { "*" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_a_prefix() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a.*", "a.b", true),
            ("a.*", "ab", false),
            ("*", "a", true),
        ];
        for (pattern, tool, fits) in cases {
            assert_eq!(
                NamePattern::try_from(pattern.to_owned())
                    .unwrap()
                    .matches(tool),
                fits,
                "{pattern} {tool}"
            );
        }
        for wrong in ["", "a*b", "**"] {
            assert!(NamePattern::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
