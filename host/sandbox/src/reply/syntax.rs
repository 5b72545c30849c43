//! Syntax checks for text that clients interpret: MIME types, URIs and timestamps.

use toolbay_model::uri::check_authority;

/// Returns whether the text is a MIME type (RFC 6838), with or without parameters, in visible
/// ASCII.
pub(crate) fn is_mime_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default();
    let is_token = |part: &str| {
        (1..=127).contains(&part.len())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    essence
        .trim_end()
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// Returns whether the text is an RFC 3339 timestamp with uppercase `T` and `Z`, which all
/// validators accept. Clients reject a whole list if one timestamp is invalid.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else {
        return false;
    };
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, None),
        None => match time.rfind(['+', '-']) {
            Some(at) => (time.get(..at).unwrap_or_default(), time.get(at + 1..)),
            None => return false,
        },
    };
    let (time, fraction) = time
        .split_once('.')
        .map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let is_fraction = |digits: &str| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let Some([year, month, day]) = parse_numbers(date, '-', [4, 2, 2]) else {
        return false;
    };
    let Some([hour, minute, second]) = parse_numbers(time, ':', [2, 2, 2]) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    let is_offset =
        |offset: &str| matches!(parse_numbers(offset, ':', [2, 2]), Some([0..24, 0..60]));
    (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        // Few validators accept a leap second.
        && second < 60
        && fraction.is_none_or(is_fraction)
        && offset.is_none_or(is_offset)
}

/// Parses numbers that have the given numbers of digits and are separated by `separator`.
fn parse_numbers<const N: usize>(
    text: &str,
    separator: char,
    digits: [usize; N],
) -> Option<[u32; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts
            .next()
            .filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns whether the text is a scheme (RFC 3986), a colon, and only characters that a URI allows.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return false;
    };
    check_authority(text).is_ok()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_forms_are_distinguished_from_similar_ones() {
        let check = |is_form: fn(&str) -> bool, right: &[&str], wrong: &[&str]| {
            assert!(right.iter().all(|text| is_form(text)), "{right:?}");
            assert!(!wrong.iter().any(|text| is_form(text)), "{wrong:?}");
        };
        check(
            is_mime_type,
            &["text/plain", "text/plain; charset=utf-8", "image/svg+xml"],
            &[
                "",
                "text",
                "text/",
                "text/pl ain",
                "text/plain\r\nx: y",
                "text/plain; charset=ü",
            ],
        );
        check(
            is_uri,
            &[
                "notes://a/b?c#d",
                "a:b",
                "urn:isbn:1",
                "a+b-c.d:",
                "http://[::1]:80/",
            ],
            &[
                "http://[::1/",
                "http://",
                "x://h:99999/",
                "",
                "a",
                "1a:b",
                ":b",
                "a b:c",
                "a:b c",
                "a:b\u{1b}",
            ],
        );
        check(
            is_timestamp,
            &[
                "2026-01-12T15:00:58Z",
                "2026-01-12T15:00:58.123+01:00",
                "2024-02-29T23:59:59-11:30",
            ],
            &[
                "",
                "today",
                "2026-01-12",
                "2026-01-12T15:00:58",
                "9999-99-99T::",
                "2026-1-12T15:00:58Z",
                "2026-02-29T15:00:58Z",
                "2026-01-12T24:00:00Z",
                "2026-01-12T15:00:58.Z",
                "2026-01-12T15:00:58+1:00",
                "2026-01-12T15:00:58+24:00",
                "2026-01-12t15:00:58z",
                "2026-01-12T",
                "2026-01-12 15:00",
                "2026-01-12T\u{202e}",
            ],
        );
    }
}
