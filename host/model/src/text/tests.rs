//! Tests of `text`.

use super::*;

#[test]
fn plain_text_is_unchanged() {
    for text in [
        "",
        "שלום!",
        "Grüezi\tmitenand\n",
        "日本語",
        "عربي",
        "👩‍👩‍👧",
        "e\u{301}",
        "1\u{fe0f}\u{20e3} ❤\u{fe0f}\u{200d}🔥 ℹ\u{fe0f} ☎\u{fe0e} 🅰\u{fe0f}",
        "می\u{200c}خواهم",
        "क\u{94d}\u{200d}ष",
        "\u{1820}\u{180b}",
    ] {
        assert!(
            matches!(clean(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn unsafe_characters_are_found_at_every_position() {
    let mut buffer = [0; 4];
    for c in '\0'..=char::MAX {
        let text = &*c.encode_utf8(&mut buffer);
        assert_eq!(
            find_unsafe(text).is_some(),
            is_forbidden(c) || is_modifier(c),
            "{c:?}"
        );
    }
    for before in 0..200 {
        // Characters of two bytes, and one whose first byte is suspicious.
        let text = "é".repeat(before / 2) + &"x".repeat(before % 2) + "…";
        assert_eq!(find_unsafe(&text), None);
        assert_eq!(find_unsafe(&format!("{text}\u{7}{text}")), Some(text.len()));
    }
}

#[test]
fn invisible_characters_are_removed() {
    // One byte per selector, as in a message that is hidden behind an emoji; one bit per
    // joiner.
    let selectors = |c: char| {
        let bytes = b"ignore all"
            .iter()
            .map(|byte| char::from_u32(0xe0100 + u32::from(*byte)).unwrap());
        bytes.fold(String::from(c), |text, selector| {
            text + &String::from(selector)
        })
    };
    assert_eq!(clean(&selectors('😀')), "😀");
    // A sample of the many tags and selectors of the last plane.
    let all = ('\u{a0}'..'\u{e0000}').chain([
        '\u{e0001}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{e01ef}',
        '\u{e0fff}',
    ]);
    let invisible: Vec<char> = all
        .filter(|c| is_forbidden(*c) || is_modifier(*c))
        .collect();
    for before in ["", "a", "ü", "ک", "😀", "❤", " ", "\u{3000}", "\u{1820}"] {
        for first in &invisible {
            for second in &invisible {
                let text = format!("{before}{first}{second}{first}{second}");
                let cleaned = clean(&text);
                let remaining = cleaned.strip_prefix(before).unwrap();
                // A selector and a joiner, as between two emoji.
                let few = remaining.chars().count() <= 1 || remaining == "\u{fe0f}\u{200d}";
                assert!(few && remaining.chars().all(is_modifier), "{text:?}");
                assert!(!before.is_ascii() || remaining.is_empty(), "{text:?}");
            }
            let text = format!("{before}{first}");
            assert_eq!(clean(&clean(&text)), clean(&text));
        }
    }
}

#[test]
fn a_displayed_duration_can_be_parsed_again() {
    for (seconds, shown) in [
        (30, "30s"),
        (90, "1m 30s"),
        (86_400, "1 day"),
        (3 * 86_400 + 5, "3 days 5s"),
    ] {
        assert_eq!(format_duration(Duration::from_secs(seconds)), shown);
        assert_eq!(
            humantime::parse_duration(shown),
            Ok(Duration::from_secs(seconds))
        );
    }
}

#[test]
fn a_line_is_shortened_to_its_maximum() {
    assert_eq!(clean_line("a\r\nb\tc\u{1b}[2J", 9), "a\\nb\\tc");
    assert_eq!(clean_line("öööö", 8), "öööö");
    assert_eq!(clean_line("ööööö", 8), "öö…");
    assert_eq!(
        clean_line("one\u{2028}two\u{2029}three\u{85}\u{b}\u{c}", 99),
        "one\\ntwo\\nthree"
    );
}

#[test]
fn formatting_stops_at_the_limit() {
    struct Endless;
    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("x\u{202e}é")?;
            }
        }
    }
    assert_eq!(bounded_line(Endless, 10), "xéxéx…");
    assert_eq!(bounded_line("short\n", 10), "short\\n");
    assert_eq!(bounded_line("0123456789", 10), "0123456789");
    assert_eq!(bounded_line("0123456789a", 10), "0123456…");
}

#[test]
fn escaped_json_has_the_same_value_and_no_unsafe_characters() {
    let value = serde_json::json!({"a\u{202e}": ["\u{9b}2J\u{7f}", "\u{e0041}", "é\n\u{2028}"]});
    let text = format!("{value:#}");
    let escaped = escape_json(&text);
    assert!(
        !escaped.chars().any(|c| is_forbidden(c) || c == '\u{2028}'),
        "{escaped}"
    );
    assert!(
        escaped.contains("\\u009b2J\\u007f") && escaped.contains("\\udb40\\udc41"),
        "{escaped}"
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
        value
    );
    assert!(matches!(escape_json("{\"é\": 1}"), Cow::Borrowed(_)));
}

#[test]
fn control_characters_are_removed() {
    let cases = [
        ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
        ("\u{9b}2Jgone", "gone"),
        ("\u{1b}]0;title\u{7}text", "text"),
        (
            "\u{1b}]8;;https://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\",
            "link",
        ),
        ("\u{1b}creset", "reset"),
        ("a\u{8}b\u{0}c\u{7f}d", "abcd"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("safe\u{202e}exe.txt", "safeexe.txt"),
        ("\u{2066}x\u{2069}", "x"),
        ("hi\u{e0041}\u{e0042}", "hi"),
        ("so\u{ad}ft\u{2062}\u{200b}\u{3164}", "soft"),
        ("\u{200f}x\u{61c}\u{200e}", "x"),
        ("a\u{fe0f}b\u{200d}c\u{200c} \u{200d}", "abc "),
        (
            "❤\u{fe0f}\u{fe0f}\u{fe0e}\u{200d}\u{200d}🔥",
            "❤\u{fe0f}\u{200d}🔥",
        ),
        ("end\u{1b}", "end"),
        ("end\u{1b}[", "end"),
    ];
    for (text, expected) in cases {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}
