//! Patterns of tools and digests of components in a grant.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_model::{Digest, is_name};

/// Pattern of tool names. `*` stands for any characters, including none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Returns the pattern as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the tool `name` (without the prefix) matches the pattern.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() || !(text == "*" || is_name(&text.replace('*', "_"))) {
            let wrong = format_args!(
                "{text:?} is not the name of a tool, nor a pattern such as \"read_*\""
            );
            return Err(D::Error::custom(wrong));
        }
        Ok(Self(text))
    }
}

/// Parses the patterns of `enabled_tools`.
pub(crate) fn patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ToolPattern>>, D::Error> {
    let patterns = Vec::<ToolPattern>::deserialize(deserializer)?;
    if patterns.is_empty() {
        return Err(D::Error::custom(
            "expected at least one name or pattern; to offer every tool, leave out `enabled_tools`",
        ));
    }
    Ok(Some(patterns))
}

/// Parses the digest of a component.
pub(crate) fn digest<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Digest>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || {
        D::Error::custom(format_args!(
            "expected \"{}\" and the 64 hexadecimal digits that `toolbay check` prints, not {text:?}",
            Digest::PREFIX
        ))
    };
    Digest::from_prefixed_hex(&text).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, matches) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "reread_file", false),
            ("*", "x", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("r*_*e", "read_file", true),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
        ] {
            assert_eq!(
                ToolPattern(pattern.to_owned()).matches(name),
                matches,
                "{pattern} {name}"
            );
        }
    }
}
