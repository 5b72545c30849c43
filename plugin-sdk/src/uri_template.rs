//! URI templates (RFC 6570, level 1, and `{+name}`): matches URIs and extracts the values of
//! variables.

use std::collections::HashSet;

/// A part of a template.
#[derive(Clone, Copy, Debug)]
enum TemplateSegment<'a> {
    /// Literal text.
    Text(&'a str),
    /// A variable: `{name}`, or `{+name}` if it may contain reserved characters.
    Variable { name: &'a str, reserved: bool },
}

/// Returns the values of a template's variables in `uri`, in order. Returns `None` if `uri` does
/// not match.
///
/// A variable has at least one character, and as few as the rest of the template allows. `{name}`
/// does not contain `/`, `?` or `#`, and its value is decoded. `{+name}` can contain any character,
/// and its value is not decoded.
pub(crate) fn match_uri(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let parts = parse_template(template)?;
    let mut values = match_parts(&parts, uri, &mut HashSet::new())?;
    // The values are in reverse order, from the last variable to the first.
    values.reverse();
    let read = |(name, value, reserved): (&str, &str, bool)| {
        Some((
            name.to_owned(),
            if reserved {
                value.to_owned()
            } else {
                percent_decode(value)?
            },
        ))
    };
    values.into_iter().map(read).collect()
}

/// Parses the parts of a template. Returns `None` if a brace is missing.
fn parse_template(mut template: &str) -> Option<Vec<TemplateSegment<'_>>> {
    let mut parts = Vec::new();
    while let Some((text, rest)) = template.split_once('{') {
        let (name, rest) = rest.split_once('}')?;
        let reserved = name.strip_prefix('+');
        parts.extend([
            TemplateSegment::Text(text),
            TemplateSegment::Variable {
                name: reserved.unwrap_or(name),
                reserved: reserved.is_some(),
            },
        ]);
        template = rest;
    }
    parts.push(TemplateSegment::Text(template));
    Some(parts)
}

/// Returns the values of the variables in `parse_template`, last first. `failed` contains the
/// failed attempts, each as the number of remaining parts and of remaining bytes, so that none is
/// repeated.
fn match_parts<'a>(
    parts: &[TemplateSegment<'a>],
    uri: &'a str,
    failed: &mut HashSet<(usize, usize)>,
) -> Option<Vec<(&'a str, &'a str, bool)>> {
    let Some((part, rest)) = parts.split_first() else {
        return uri.is_empty().then(Vec::new);
    };
    if failed.contains(&(parts.len(), uri.len())) {
        return None;
    }
    let found = match *part {
        TemplateSegment::Text(text) => uri
            .strip_prefix(text)
            .and_then(|uri| match_parts(rest, uri, failed)),
        TemplateSegment::Variable { name, reserved } => {
            let most = if reserved {
                uri.len()
            } else {
                uri.find(['/', '?', '#']).unwrap_or(uri.len())
            };
            let mut ends = (1..=most).filter(|end| uri.is_char_boundary(*end));
            ends.find_map(|end| {
                let (value, uri) = uri.split_at_checked(end)?;
                let mut values = match_parts(rest, uri, failed)?;
                values.push((name, value, reserved));
                Some(values)
            })
        }
    };
    if found.is_none() {
        failed.insert((parts.len(), uri.len()));
    }
    found
}

/// Decodes percent-encoded bytes such as `%20`. Returns `None` if an encoding is invalid or the
/// result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| {
                    char::from(byte?)
                        .to_digit(16)
                        .and_then(|digit| u8::try_from(digit).ok())
                };
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                high << 4 | low
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(template: &str, uri: &str) -> Option<String> {
        let values = match_uri(template, uri)?;
        Some(
            values
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    #[test]
    fn a_uri_fits_or_does_not() {
        let cases = [
            ("notes://all", "notes://all", Some("")),
            ("notes://all", "notes://al", None),
            ("notes://{id}", "notes://7", Some("id=7")),
            ("notes://{id}", "notes://", None),
            ("notes://{id}", "notes://a/b", None),
            ("notes://{+path}", "notes://a/b?c", Some("path=a/b?c")),
            ("notes://{id}", "notes://a%20b", Some("id=a b")),
            ("notes://{id}", "notes://a%2", None),
            ("notes://{id}", "notes://a%ff", None),
            (
                "test://template/{id}/data",
                "test://template/123/data",
                Some("id=123"),
            ),
            ("test://template/{id}/data", "test://template//data", None),
            ("a:{x}-{y}", "a:1-2-3", Some("x=1 y=2-3")),
            ("a:{x}{y}", "a:12", Some("x=1 y=2")),
            ("a:{x}", "a:é", Some("x=é")),
            ("a:{x}.txt", "a:b.txt.txt", Some("x=b.txt")),
            ("a:{x}.txt", "a:.txt", None),
            ("a:{+x}/{y}", "a:1/2/3", Some("x=1/2 y=3")),
            ("a:{x}aab{y}", "a:aaaabb", Some("x=aa y=b")),
            ("a:{x", "a:1", None),
        ];
        for (template, uri, expected) in cases {
            assert_eq!(
                found(template, uri).as_deref(),
                expected,
                "{template} {uri}"
            );
        }
    }
}
