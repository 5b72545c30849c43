//! The URIs of resources: their syntax, and their construction from the path of a file.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolbay_model::text::format_thousands;
use toolbay_model::uri::check_authority;

/// Maximum length of a URI, in bytes.
pub(crate) const MAX_URI_BYTES: usize = 2 << 10;

/// The scheme of plain files. Plugins cannot use it, because they could impersonate the operator's
/// files.
pub(crate) const FILE_SCHEME: &str = "toolbay";

/// The scheme of the files of skills. Plugins cannot use it either.
pub(crate) const SKILL_SCHEME: &str = "skill";

/// The scheme of views.
pub(crate) const VIEW_SCHEME: &str = "ui";

/// The characters that are percent-encoded in a path segment: all that are not unreserved in RFC
/// 3986.
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Checks an absolute URI (RFC 3986).
///
/// # Errors
///
/// Returns a description of the problem: the end of a sentence that begins with the URI.
pub(crate) fn check(uri: &str) -> Result<(), String> {
    if uri.len() > MAX_URI_BYTES {
        let [length, most] = [uri.len(), MAX_URI_BYTES].map(|n| format_thousands(n as u64));
        return Err(format!(
            "has {length} bytes, but at most {most} are allowed"
        ));
    }
    scheme(uri)?;
    check_characters(uri)?;
    check_authority(uri)?;
    if has_parent_segment(uri) {
        return Err("contains the segment \"..\"".into());
    }
    Ok(())
}

/// Returns the scheme of a URI or of a URI template.
///
/// # Errors
///
/// Returns an error if it has none: the end of a sentence that begins with the URI.
pub(crate) fn scheme(uri: &str) -> Result<&str, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    match uri.split_once(':') {
        Some((scheme, _))
            if scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(is_allowed) =>
        {
            Ok(scheme)
        }
        _ => Err("must begin with a scheme, such as \"notes:\"".into()),
    }
}

/// Checks the characters of a URI, or of the text between the expressions of a template.
///
/// # Errors
///
/// Returns a description of the problem: the end of a sentence that begins with the URI.
pub(crate) fn check_characters(text: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    if let Some(other) = text.chars().find(|c| !is_allowed(*c)) {
        return Err(format!(
            "contains {other:?}, which a URI can only contain percent-encoded"
        ));
    }
    let mut parts = text.split('%');
    let is_hex =
        |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    parts.next();
    if parts.all(is_hex) {
        Ok(())
    } else {
        Err("contains a \"%\" without two hexadecimal digits after it".into())
    }
}

/// The role of a character if the URI, or a part of it, is used as a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UriCharacter {
    /// `/`, `?` or `#`, which end the value of a simple template variable.
    Delimiter,
    /// Another end of a segment: a percent-encoded delimiter, a backslash, or a delimiter within a
    /// query.
    Separator,
    /// A dot, possibly percent-encoded.
    Dot,
    /// Any other character.
    Other,
}

/// Returns the characters of `text`, each with its length in bytes, which is 3 for a
/// percent-encoded one.
pub(crate) fn parse_characters(text: &str) -> Vec<(usize, UriCharacter)> {
    let mut characters = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        let (byte, length) = match after {
            [high, low, ..] if *first == b'%' => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => (u8::try_from(high * 16 + low).unwrap_or_default(), 3),
                _ => (*first, 1),
            },
            _ => (*first, 1),
        };
        let character = match byte {
            b'/' | b'?' | b'#' if length == 1 => UriCharacter::Delimiter,
            b'/' | b'?' | b'#' | b'\\' | b'&' | b'=' | b';' | b':' => UriCharacter::Separator,
            b'.' => UriCharacter::Dot,
            _ => UriCharacter::Other,
        };
        characters.push((length, character));
        rest = rest.get(length..).unwrap_or_default();
    }
    characters
}

/// Returns whether `text`, or a part of it such as its query, contains the segment `..`, possibly
/// percent-encoded. A plugin that uses such a URI as a path would leave the intended folder.
pub(crate) fn has_parent_segment(text: &str) -> bool {
    let characters = parse_characters(text);
    let is_segment_end = |(_, character): &(usize, UriCharacter)| {
        matches!(character, UriCharacter::Delimiter | UriCharacter::Separator)
    };
    characters
        .split(is_segment_end)
        .any(|segment| matches!(segment, [(_, UriCharacter::Dot), (_, UriCharacter::Dot)]))
}

/// Returns the URI of the file at `path` (segments relative to a folder of files) of `id`.
pub(crate) fn for_file<'a>(id: &str, path: impl IntoIterator<Item = &'a str>) -> String {
    build_uri(FILE_SCHEME, id, path)
}

/// Returns the URI of the file or folder at `path` (segments relative to its folder) of the skill
/// `name`.
pub(crate) fn for_skill<'a>(name: &str, path: impl IntoIterator<Item = &'a str>) -> String {
    build_uri(SKILL_SCHEME, name, path)
}

/// Returns the URI of the view at `path` (segments relative to a folder of views) of `id`.
pub(crate) fn for_view<'a>(id: &str, path: impl IntoIterator<Item = &'a str>) -> String {
    build_uri(VIEW_SCHEME, id, path)
}

/// Percent-encodes a plugin's id as a part of a URI.
pub(crate) fn encode_id(id: &str) -> String {
    utf8_percent_encode(id, ENCODED_CHARACTERS).to_string()
}

fn build_uri<'a>(scheme: &str, root: &str, path: impl IntoIterator<Item = &'a str>) -> String {
    let mut uri = format!("{scheme}://{}", encode_id(root));
    for segment in path {
        uri.push('/');
        uri.extend(utf8_percent_encode(segment, ENCODED_CHARACTERS));
    }
    uri
}

/// A URI to match against templates, with the results that do not depend on the template.
#[derive(Debug)]
pub(crate) struct MatchedUri<'a> {
    pub(crate) text: &'a str,
    characters: Vec<(usize, UriCharacter)>,
    /// The position of each character, in bytes.
    positions: Vec<usize>,
}

impl<'a> MatchedUri<'a> {
    /// Parses a URI. Returns `None` if no template can match it, because it is too long, is not a
    /// URI, or contains a segment `..`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_URI_BYTES || check_characters(text).is_err() || has_parent_segment(text)
        {
            return None;
        }
        let characters = parse_characters(text);
        let positions = characters
            .iter()
            .scan(0, |at, (length, _)| {
                Some(std::mem::replace(at, *at + length))
            })
            .collect();
        Some(Self {
            text,
            characters,
            positions,
        })
    }

    /// Returns the characters from the byte position `position` on. A character starts there,
    /// because the prefix of a template does not end within a percent-encoded character.
    pub(crate) fn characters_from(&self, position: usize) -> &[(usize, UriCharacter)] {
        self.characters
            .get(self.positions.partition_point(|start| *start < position)..)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_checked() {
        for uri in [
            "notes://a/b",
            "urn:isbn:0451450523",
            "x:",
            "a+b.c-1://h?q=1#f",
            "file:///a%20b",
            "x:...",
            "x:a..b",
        ] {
            assert_eq!(check(uri), Ok(()), "{uri}");
        }
        let long = format!("x:{}", "a".repeat(MAX_URI_BYTES));
        let uris = [
            "",
            "notes",
            "/a:b",
            "1x:a",
            ":a",
            "x:a b",
            "x:\u{1b}[31m",
            "x:ü",
            "x:{a}",
            "x:%",
            "x:%2",
            "x:%zz",
            "x:%2é",
            "x:..",
            "x://a/../b",
            "x://a/%2e%2E/b",
            "x://a/.%2e",
            "x://a%2f..%2fb",
            "x://a?p=../b",
            "x://a\\..\\b",
            &long,
        ];
        let said: Vec<String> = uris.iter().map(|uri| check(uri).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn the_path_of_a_file_is_encoded() {
        assert_eq!(
            for_file("my docs", ["a b", "ü?.md"]),
            "toolbay://my%20docs/a%20b/%C3%BC%3F.md"
        );
        assert_eq!(check(&for_file("a", ["...", "%2e%2e"])), Ok(()));
    }
}
