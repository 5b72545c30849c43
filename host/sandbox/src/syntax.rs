//! The forms of texts that clients act on: MIME types, URIs, times.

/// Type and subtype of RFC 6838, with or without parameters, in visible ASCII.
pub(crate) fn is_mime_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default();
    let token = |part: &str| {
        (1..=127).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    essence.trim_end().split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// A date, or a date and time, in the part of ISO 8601 that MCP uses: digits and their separators.
pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.get(..10).is_some_and(|date| {
        date.iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
    });
    let time = bytes.get(10..).unwrap_or_default();
    let plain = |byte: &u8| byte.is_ascii_digit() || b":.+-Z".contains(byte);
    date && (time.is_empty()
        || (time.first() == Some(&b'T') && (2..=30).contains(&time.len()) && time.iter().skip(1).all(plain)))
}

/// A scheme (RFC 3986), a colon, and nothing that could not stand in a URI.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_from_what_only_looks_like_them() {
        let check = |is_form: fn(&str) -> bool, right: &[&str], wrong: &[&str]| {
            assert!(right.iter().all(|text| is_form(text)), "{right:?}");
            assert!(!wrong.iter().any(|text| is_form(text)), "{wrong:?}");
        };
        check(
            is_mime_type,
            &["text/plain", "text/plain; charset=utf-8", "image/svg+xml"],
            &["", "text", "text/", "text/pl ain", "text/plain\r\nx: y", "text/plain; charset=ü"],
        );
        check(
            is_uri,
            &["notes://a/b?c#d", "a:b", "urn:isbn:1", "a+b-c.d:"],
            &["", "a", "1a:b", ":b", "a b:c", "a:b c", "a:b\u{1b}"],
        );
        check(
            is_time,
            &["2026-01-12", "2026-01-12T15:00:58Z", "2026-01-12T15:00:58.123+01:00"],
            &["", "today", "2026-1-12", "2026-01-12T", "2026-01-12 15:00", "2026-01-12T\u{202e}"],
        );
    }
}
