//! Cleans text from guests, so that people and models see what it really says.
//!
//! Terminals obey control characters, and bidirectional overrides make text look like other text. Neither belongs in a
//! tool's result.

use std::borrow::Cow;
use std::time::Duration;

/// Returns `text` without control characters: C0 and C1 controls except tab and line feed, ANSI escape sequences,
/// bidirectional controls and invisible tag characters.
pub fn clean(text: &str) -> Cow<'_, str> {
    // Almost all text contains none: a fast check of the bytes.
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    if text.bytes().all(plain) || !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' | '\u{9b}' => skip_escape(c, &mut rest),
            // CRLF counts as one line end.
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => out.push('\n'),
            c if acts(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A duration as `humantime` writes it, with a space before units that are words: `1m 30s`, `1 day`. The result can be
/// read as a duration again.
pub fn duration(time: Duration) -> String {
    let text = humantime::format_duration(time).to_string();
    ["day", "month", "year"].into_iter().fold(text, |text, unit| text.replace(unit, &format!(" {unit}")))
}

/// `10000` as `10,000`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The non-blank lines of `text`, trimmed and joined by `; `, such as a compiler's message on one line.
pub fn joined(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Returns `text` as one line of at most `most` bytes: cleaned, with line feeds and tabs written as `\n` and `\t`.
pub fn line(text: &str, most: usize) -> String {
    let mut line = clean(text).replace('\n', "\\n").replace('\t', "\\t");
    if line.len() > most {
        line.truncate(line.floor_char_boundary(most.saturating_sub('…'.len_utf8())));
        line.push('…');
    }
    line
}

fn acts(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        // Embeddings and overrides, isolates and deprecated format characters, tags, a byte order mark.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}' | '\u{feff}' => true,
        c => c.is_control(),
    }
}

/// Skips the rest of an escape sequence: `ESC [ parameters final`, `ESC ] text BEL`, or one more character.
fn skip_escape(first: char, rest: &mut std::str::Chars<'_>) {
    let kind = if first == '\u{9b}' { Some('[') } else { rest.as_str().chars().next() };
    match kind {
        Some('[') => {
            if first == '\u{1b}' {
                rest.next();
            }
            // Parameters and intermediates are 0x20 to 0x3f, the final character is 0x40 to 0x7e.
            for c in rest.by_ref() {
                if !('\u{20}'..='\u{3f}').contains(&c) {
                    break;
                }
            }
        }
        Some(']') => {
            for c in rest.by_ref() {
                if c == '\u{7}' || c == '\u{9c}' || c == '\u{1b}' {
                    break;
                }
            }
            // `ESC \` ends it as well.
            if rest.as_str().starts_with('\\') {
                rest.next();
            }
        }
        Some(c) if ('\u{20}'..='\u{7e}').contains(&c) => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_unchanged() {
        for text in ["", "שלום\u{200f}!", "Grüezi\tmitenand\n", "日本語", "عربي", "👩‍👩‍👧", "e\u{301}"]
        {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn a_displayed_duration_can_be_parsed_again() {
        for (seconds, shown) in [(30, "30s"), (90, "1m 30s"), (86_400, "1 day"), (3 * 86_400 + 5, "3 days 5s")] {
            assert_eq!(duration(Duration::from_secs(seconds)), shown);
            assert_eq!(humantime::parse_duration(shown), Ok(Duration::from_secs(seconds)));
        }
    }

    #[test]
    fn a_line_is_shortened_to_its_maximum() {
        assert_eq!(line("a\r\nb\tc\u{1b}[2J", 9), "a\\nb\\tc");
        assert_eq!(line("öööö", 8), "öööö");
        assert_eq!(line("ööööö", 8), "öö…");
    }

    #[test]
    fn control_characters_are_removed_and_the_text_stays() {
        let cases = [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{9b}2Jgone", "gone"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}creset", "reset"),
            ("a\u{8}b\u{0}c\u{7f}d", "abcd"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("safe\u{202e}exe.txt", "safeexe.txt"),
            ("\u{2066}x\u{2069}", "x"),
            ("hi\u{e0041}\u{e0042}", "hi"),
            ("end\u{1b}", "end"),
            ("end\u{1b}[", "end"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }
}
