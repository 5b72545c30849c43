//! Tests of `text_reading`.

use super::*;

#[test]
fn only_valid_escapes_are_decoded() {
    let cases = [
        (
            TextReading::Unescaped,
            r#"a\/b\u0026c\"\\\x41\u{e9}\ud83d\ude00\n"#,
            "a/b&c\"\\Aé😀\n",
        ),
        (
            TextReading::Unescaped,
            r"\q\u00\ud83dx\u{}\x4\",
            r"\q\u00\ud83dx\u{}\x4\",
        ),
        (
            TextReading::PercentDecoded,
            "a%26b%c3%BC%2525%%4",
            "a&bü%25%%4",
        ),
        (TextReading::Unwrapped, "one\r\n\ttwo\n", "onetwo"),
    ];
    for (reading, text, expected) in cases {
        assert_eq!(
            String::from_utf8(reading.decode(text.as_bytes())).unwrap(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn decoded_ranges_map_to_the_text() {
    let reading = TextReading::Unescaped;
    let text = br"x\u0061b\/c\\d";
    let read = reading.decode(text);
    assert_eq!(read, br"xab/c\d");
    for start in 0..read.len() {
        for end in start + 1..=read.len() {
            let mut ranges = vec![start..end, end..read.len()];
            ranges.retain(|range| !range.is_empty());
            reading.map_ranges(text, ranges.iter_mut());
            let part = &text[ranges[0].clone()];
            assert_eq!(reading.decode(part), read[start..end], "{start}..{end}");
            assert!(
                ranges
                    .get(1)
                    .is_none_or(|next| *next == (ranges[0].end..text.len())),
                "{ranges:?}"
            );
        }
    }
}

#[test]
fn incomplete_escape_is_excluded() {
    for (text, whole) in [
        (r"abc\u00", 3),
        (r"abc\\\", 3),
        (r"abc", 3),
        (r"\", 0),
        (r"a\n0123456789012", 16),
    ] {
        assert_eq!(
            TextReading::Unescaped.complete_length(text.as_bytes()),
            whole,
            "{text}"
        );
    }
    assert_eq!(TextReading::PercentDecoded.complete_length(b"abc%2"), 3);
    assert_eq!(TextReading::Unwrapped.complete_length(b"abc\n"), 4);
}
