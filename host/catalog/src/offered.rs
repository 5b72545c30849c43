//! Which tools of a plugin a grant offers, and for which component it is.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_model::{Digest, is_name};
use toolbay_settings::toml_file::nearest;

use crate::component::Component;
use crate::grant::Grant;
use crate::plugin::tool_name;

/// What a digest begins with in a grant.
const ALGORITHM: &str = "sha256:";

/// Names of tools: `*` stands for any characters, also for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Whether the tool `name` (without the prefix) is one of those.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() || !(text == "*" || is_name(&text.replace('*', "_"))) {
            let wrong = format_args!("{text:?} is not the name of a tool, nor a pattern such as \"read_*\"");
            return Err(D::Error::custom(wrong));
        }
        Ok(Self(text))
    }
}

/// Parses the patterns of `offer`.
pub(crate) fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<ToolPattern>>, D::Error> {
    let patterns = Vec::<ToolPattern>::deserialize(deserializer)?;
    if patterns.is_empty() {
        return Err(D::Error::custom("expected at least one name or pattern; to offer every tool, leave out `offer`"));
    }
    Ok(Some(patterns))
}

/// Parses the digest of a component.
pub(crate) fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || {
        D::Error::custom(format_args!(
            "expected \"{ALGORITHM}\" and the 64 hexadecimal digits that `toolbay check` prints, not {text:?}"
        ))
    };
    let digits = text.strip_prefix(ALGORITHM).filter(|digits| digits.len() == 64).ok_or_else(wrong)?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
        *byte = u8::from_str_radix(pair.ok_or_else(wrong)?, 16).map_err(|_| wrong())?;
    }
    Ok(Some(Digest::new(bytes)))
}

impl Grant {
    /// Checks that the grant is for this component of the plugin `id`, and names no tool that it does not have. What a
    /// grant says of a tool may protect from it, and would mean nothing for a tool of another name.
    ///
    /// # Errors
    ///
    /// What does not fit, with the nearest name.
    pub fn check_component(&self, id: &str, component: &Component) -> Result<(), String> {
        let own: Vec<String> = component.contents.tools.iter().map(|known| known.tool.name.clone()).collect();
        // A command has no name of its own.
        self.check_tools(component.digest, &if component.is_command() { vec![tool_name(id)] } else { own })
    }

    /// The same for a component with this digest and these tools.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn check_tools(&self, digest: Digest, tools: &[String]) -> Result<(), String> {
        if let Some(pinned) = self.component.filter(|pinned| *pinned != digest) {
            return Err(format!(
                "component: the grant is for the file with {ALGORITHM}{pinned}, and this one has {ALGORITHM}{digest}; if you \
                 trust it, change the grant"
            ));
        }
        let known: Vec<&str> = tools.iter().map(String::as_str).collect();
        let near = |name: &str| match nearest(name, &known) {
            Some(near) => format!("; did you mean {near:?}?"),
            None => String::new(),
        };
        if let Some(name) = self.tools.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("tools.{name}: the plugin has no tool with this name{}", near(name)));
        }
        for pattern in self.offer.iter().flatten() {
            if !known.iter().any(|name| pattern.matches(name)) {
                let text = &pattern.0;
                return Err(format!("offer: the plugin has no tool {text:?}{}", near(&text.replace('*', ""))));
            }
        }
        Ok(())
    }

    /// Whether the tool `name` (without the prefix) is offered, unless it is hidden.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.offer.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<Grant, String> {
        Grant::parse("a.toml", text, Path::new("/plugins"))
    }

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
            assert_eq!(ToolPattern(pattern.to_owned()).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_grant_names_only_what_the_plugin_has() {
        let (digest, pinned) = (Digest::new([7; 32]), "07".repeat(32));
        let tools = ["slugify".to_owned(), "read_file".to_owned()];
        let check = |text: &str| parse(text).and_then(|grant| grant.check_tools(digest, &tools));
        for text in [
            String::new(),
            "[tools.slugify]\nhidden = true".to_owned(),
            "offer = [\"read_*\"]".to_owned(),
            format!("component = \"sha256:{pinned}\""),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
        let wrong = [
            "[tools.slugifi]\napprove = \"always\"",
            "[tools.erase]\nhidden = true",
            "offer = [\"raed_*\"]",
            "offer = [\"slugify\", \"erase\"]",
            "offer = []",
            "offer = [\"read file\"]",
            "offer = \"read_*\"",
            "component = \"sha256:07\"",
            "component = \"07\"",
        ];
        let said: Vec<String> = wrong.iter().map(|text| check(text).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
        let why = check(&format!("component = \"sha256:{}\"", "0A".repeat(32))).unwrap_err();
        assert!(why.contains(&"0a".repeat(32)) && why.contains(&pinned), "{why}");
    }
}
