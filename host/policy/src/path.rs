//! Request paths, and the prefixes that a rule allows.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use serde::{Deserialize, Serialize};

/// Maximum number of percent-decoding rounds until a path stops changing. `%2541` is `%41` for a
/// server that decodes once, and `A` for one that decodes twice.
const MAX_DECODING_ROUNDS: usize = 4;

/// A path prefix that a rule allows, in the form that requests use.
///
/// `/v1/` covers every path that begins with it. `/v1`, without a slash at the end, covers `/v1`
/// itself and every path that begins with `/v1/`, but not `/v10`. Case is significant. A query is
/// not part of the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPrefix(String);

impl PathPrefix {
    /// Parses an entry of `paths`.
    ///
    /// # Errors
    ///
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("{text:?} must begin with `/`, as in \"/v1/\""));
        }
        if text.contains('*') {
            return Err(format!(
                "{text:?} has `*`, which is not a pattern here: an entry covers every path that begins with it"
            ));
        }
        if text.contains(['?', '#']) {
            return Err(format!(
                "{text:?} must be a path without query and fragment; a rule cannot restrict those"
            ));
        }
        // The characters of a path in RFC 3986, section 3.3.
        let is_path_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%/".contains(&byte);
        if !text.bytes().all(is_path_byte) {
            return Err(format!(
                "{text:?} has characters that the path of a request cannot contain; write them percent-encoded, \
                 such as %20 for a space"
            ));
        }
        match normalize_path(text) {
            Ok(resolved) if resolved.eq_ignore_ascii_case(text) => Ok(Self(resolved)),
            Ok(resolved) => Err(format!(
                "{text:?} has `.` or `..` as a segment; write {resolved:?}"
            )),
            Err(AmbiguousPath) => Err(format!(
                "{text:?} never matches: paths with an encoded dot, slash, backslash or control character, an invalid \
                 percent-encoding, or a segment such as `..;` are denied"
            )),
        }
    }

    /// Returns whether `path` begins with the prefix. [`normalize_path`] must have returned `path`.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.0.as_str());
        rest.is_some_and(|rest| self.0.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PathPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<PathPrefix> for String {
    fn from(path: PathPrefix) -> Self {
        path.0
    }
}

/// A path that servers interpret in different ways, so that no prefix determines its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmbiguousPath;

/// Removes `.` and `..` segments (RFC 3986, section 5.2.4) from a path, and converts the digits of
/// its percent-encodings to upper case. `path` has no query.
///
/// Every server that removes dot segments gets the same path. A sequence that only some servers
/// interpret as a slash or a dot segment is an error: it could leave the prefix that the operator
/// allowed.
pub(crate) fn normalize_path(path: &str) -> Result<String, AmbiguousPath> {
    let is_graphic = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if !path.starts_with('/') || !is_graphic || has_hidden_separators(path) {
        return Err(AmbiguousPath);
    }
    let is_dot_segment = |segment: &&str| matches!(*segment, "." | "..");
    // Some servers merge slashes before they remove dot segments, others after: `/v1//../x` is
    // `/v1/x` or `/x`.
    if path.contains("//") && path.split('/').any(|segment| is_dot_segment(&segment)) {
        return Err(AmbiguousPath);
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    // After a dot segment at the end, the path ends with a slash.
    if path
        .rsplit('/')
        .next()
        .is_some_and(|last| is_dot_segment(&last))
    {
        segments.push("");
    }
    Ok(upper_case_encodings(&format!("/{}", segments.join("/"))))
}

/// Returns whether percent-encodings could hide a separator or a dot segment from this check but
/// not from a server.
fn has_hidden_separators(path: &str) -> bool {
    let is_complete_encoding =
        |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !path.split('%').skip(1).all(is_complete_encoding) {
        return true;
    }
    // Some servers decode more than once: `%252e` is `%2e`, and then a dot.
    let mut text = Cow::Borrowed(path.as_bytes());
    for _ in 0..MAX_DECODING_ROUNDS {
        let is_separator = |byte: u8| byte.is_ascii_control() || b"./\\".contains(&byte);
        if encoded_bytes(&text).any(is_separator) {
            return true;
        }
        let decoded: Vec<u8> = percent_decode(&text).collect();
        if decoded == *text {
            return std::str::from_utf8(&decoded).map_or(true, has_ambiguous_dot_segments);
        }
        text = Cow::Owned(decoded);
    }
    true
}

/// Returns the bytes that are percent-encoded in `text`.
fn encoded_bytes(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    text.windows(3).filter_map(move |window| match window {
        [b'%', high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    })
}

/// Returns whether only some servers interpret a segment as a dot segment: one with a path
/// parameter (`..;a=1`) or with surrounding spaces.
fn has_ambiguous_dot_segments(path: &str) -> bool {
    path.split('/').any(|segment| {
        let name = segment.split(';').next().unwrap_or(segment);
        matches!(name.trim(), "." | "..") && !matches!(segment, "." | "..")
    })
}

/// Converts percent-encodings to upper case: `%c3` to `%C3`, which is equivalent (RFC 3986, section
/// 6.2.2.1).
fn upper_case_encodings(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut digits = 0;
    for c in path.chars() {
        match c {
            '%' => digits = 2,
            _ if digits > 0 => digits -= 1,
            _ => {
                out.push(c);
                continue;
            }
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests;
