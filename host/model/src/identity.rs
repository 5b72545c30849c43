//! Identities of callers, which separate the data that the host stores for each of them.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum length of a path component, in bytes (`NAME_MAX` on Linux).
const MAX_PATH_COMPONENT_BYTES: usize = 255;

/// The authenticated caller of a call.
///
/// Data of one identity, such as a credential or a folder, is never used for another. Two
/// identities are equal if and only if their names are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerIdentity(Arc<str>);

impl CallerIdentity {
    /// Returns the identity of the caller with this name: `stdio`, `token:ci` or
    /// `oauth:ada of https://auth.example.com`.
    ///
    /// Returns `None` for every other name. An address (`ip:192.0.2.7`) is not authenticated, and
    /// the name of a token without a subject (`oauth-token:…`) changes with every token.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_stdio_or_token = name == "stdio"
            || name
                .strip_prefix("token:")
                .is_some_and(|token| !token.is_empty());
        (is_stdio_or_token || parse_oauth_name(name).is_some()).then(|| Self(name.into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the relative path of this caller's data in a folder: `stdio`, `token/ci` or
    /// `oauth/https%3A%2F%2Fauth.example.com/ada`. All bytes except `A-Z a-z 0-9 _ -`, and dots
    /// within a component, are percent-encoded. So no two callers share a path, and no path leads
    /// outside the folder.
    ///
    /// Returns `None` if a component would be longer than a file name can be.
    pub fn path(&self) -> Option<PathBuf> {
        let parts: Vec<&str> = match (parse_oauth_name(&self.0), self.0.split_once(':')) {
            (Some((subject, issuer)), _) => vec!["oauth", issuer, subject],
            (None, Some((kind, name))) => vec![kind, name],
            (None, None) => vec![&self.0],
        };
        parts
            .into_iter()
            .map(encode_path_component)
            .map(|part| (part.len() <= MAX_PATH_COMPONENT_BYTES).then_some(part))
            .collect()
    }
}

impl fmt::Display for CallerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the subject and the issuer of a caller with an OAuth token. An issuer has no spaces, so
/// the last ` of ` separates them.
fn parse_oauth_name(name: &str) -> Option<(&str, &str)> {
    let (subject, issuer) = name.strip_prefix("oauth:")?.rsplit_once(" of ")?;
    (!subject.is_empty() && !issuer.is_empty()).then_some((subject, issuer))
}

/// Encodes `text` as one path component.
fn encode_path_component(text: &str) -> String {
    let mut part = String::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => part.push(char::from(byte)),
            // Not at the start: `.` and `..` are other folders, and a file whose name starts with a
            // dot is hidden.
            b'.' if index > 0 => part.push('.'),
            other => {
                let _ = write!(part, "%{other:02X}");
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Option<String> {
        Some(
            CallerIdentity::from_name(name)?
                .path()?
                .to_str()
                .unwrap()
                .to_owned(),
        )
    }

    #[test]
    fn callers_have_distinct_paths() {
        for (name, expected) in [
            ("stdio", "stdio"),
            ("token:ci", "token/ci"),
            ("token:v1.2", "token/v1.2"),
            ("token:..", "token/%2E."),
            ("token:a/b", "token/a%2Fb"),
            ("token:a%2Fb", "token/a%252Fb"),
            ("token:é", "token/%C3%A9"),
            (
                "oauth:ada of https://auth.example.com",
                "oauth/https%3A%2F%2Fauth.example.com/ada",
            ),
            (
                "oauth:a of https://x of https://y",
                "oauth/https%3A%2F%2Fy/a%20of%20https%3A%2F%2Fx",
            ),
            ("token:stdio", "token/stdio"),
        ] {
            assert_eq!(path(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn addresses_are_not_identities() {
        for name in [
            "",
            "ip:192.0.2.7",
            "ip:2001:db8:0:1::/64",
            "oauth-token:00 of https://a",
            "token:",
            "oauth:a",
            "x",
        ] {
            assert_eq!(CallerIdentity::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn overlong_names_have_no_path() {
        assert!(path(&format!("token:{}", "a".repeat(MAX_PATH_COMPONENT_BYTES))).is_some());
        assert_eq!(
            path(&format!(
                "token:{}",
                "a".repeat(MAX_PATH_COMPONENT_BYTES + 1)
            )),
            None
        );
        assert_eq!(
            path(&format!(
                "oauth:{} of https://a",
                "/".repeat(MAX_PATH_COMPONENT_BYTES / 3 + 1)
            )),
            None
        );
    }
}
