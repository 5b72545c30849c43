//! Sanitization and formatting of text, so that people and models see the same text.
//!
//! Terminals execute control characters, and bidirectional overrides change the order in which text
//! is displayed. Both are removed from a tool's answer ([`clean`]), from a line of the log and from
//! a message on a terminal ([`clean_line()`], [`bounded_line`]), and escaped in JSON that people
//! read ([`escape_json`]).

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Returns `text` without control characters: C0 and C1 controls except tab and line feed, ANSI
/// escape sequences, bidirectional controls and marks, and invisible characters such as tags,
/// variation selectors, invisible operators and fillers. Models read invisible characters, and
/// people do not.
///
/// Emoji and some scripts need joiners and variation selectors. One of them stays if it has a
/// visible effect, which requires a suitable character before it. A second one in a row is removed.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(first) = find_unsafe(text) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let (before, rest) = text.split_at(first);
    out.push_str(before);
    let mut rest = rest.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' | '\u{9b}' => skip_escape(c, &mut rest),
            // CRLF counts as one line ending.
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => out.push('\n'),
            c if is_forbidden(c) || is_dangling_modifier(out.chars().next_back(), c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Formats a duration like `humantime`, with a space before units that are words: `1m 30s`,
/// `1 day`. The result can be parsed as a duration again.
pub fn format_duration(time: Duration) -> String {
    let text = humantime::format_duration(time).to_string();
    ["day", "month", "year"]
        .into_iter()
        .fold(text, |text, unit| text.replace(unit, &format!(" {unit}")))
}

/// Formats a number with separators: `10000` as `10,000`.
pub fn format_thousands(n: u64) -> String {
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

/// Returns the non-blank lines of `text`, trimmed and joined by `; `, such as a compiler's message
/// on one line.
pub fn join_lines(text: &str) -> String {
    text.split('\n')
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns `text` as one line of at most `max_bytes` bytes: sanitized, with line ends and tabs
/// written as `\n` and `\t`. A truncated text ends with `…`.
pub fn clean_line(text: &str, max_bytes: usize) -> String {
    let mut line = String::new();
    for c in clean(text).chars() {
        match c {
            // The Unicode line and paragraph separators also end a line.
            '\n' | '\u{2028}' | '\u{2029}' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c => line.push(c),
        }
        if line.len() > max_bytes {
            line.truncate(line.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8())));
            line.push('…');
            break;
        }
    }
    line
}

/// Formats `value` as a [`clean_line()`]. Formatting stops at the limit, even if the output of
/// `value` is endless.
pub fn bounded_line(value: impl fmt::Display, max_bytes: usize) -> String {
    // Sanitizing removes characters, so the buffer is larger than the result.
    let mut buffer = BoundedTextWriter {
        text: String::new(),
        capacity: max_bytes.saturating_mul(2),
    };
    if write!(buffer, "{value}").is_ok() {
        return clean_line(&buffer.text, max_bytes);
    }
    let line = clean_line(&buffer.text, max_bytes);
    if line.ends_with('…') {
        line
    } else {
        clean_line(&(line + "…"), max_bytes)
    }
}

/// A buffer that retains the start of the text that is written to it.
struct BoundedTextWriter {
    text: String,
    capacity: usize,
}

impl fmt::Write for BoundedTextWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let remaining = self.capacity - self.text.len();
        if text.len() <= remaining {
            self.text.push_str(text);
            return Ok(());
        }
        self.text.push_str(
            text.get(..text.floor_char_boundary(remaining))
                .unwrap_or_default(),
        );
        Err(fmt::Error)
    }
}

/// Returns JSON text in which each character that [`clean`] would remove, and each character that
/// ends a line, is a JSON escape such as `\u202e`. The value is the same, and the text has no
/// effect on a terminal.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let needs_escape =
        |c| is_forbidden(c) || is_modifier(c) || matches!(c, '\u{2028}' | '\u{2029}');
    if find_unsafe(json).is_none() && !json.contains(['\u{2028}', '\u{2029}']) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // A carriage return can only be between tokens, where it has no meaning.
            '\r' => out.push('\n'),
            c if needs_escape(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns the index of the first character that [`clean`] would remove. Almost all text has none,
/// and most of its bytes cannot start one: those are skipped many at a time.
fn find_unsafe(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        at += find_suspicious_byte(rest.as_bytes())?;
        let c = text.get(at..)?.chars().next()?;
        if is_forbidden(c)
            || (is_modifier(c) && is_dangling_modifier(text.get(..at)?.chars().next_back(), c))
        {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// Returns the index of the first byte that can start a character that must be
/// [removed](is_forbidden).
fn find_suspicious_byte(bytes: &[u8]) -> Option<usize> {
    /// Number of bytes that are checked together.
    const LANE_BYTES: usize = 64;

    // Controls, and the first bytes of characters that are removed or are modifiers: of U+0080 to
    // U+00BF, U+034F, U+061C, U+1xxx, U+2xxx, U+3164, U+Fxxx and U+E0xxx.
    let suspicious = |byte: u8| {
        (byte < b' ' && byte != b'\t' && byte != b'\n')
            | matches!(
                byte,
                0x7f | 0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xe3 | 0xef | 0xf3
            )
    };
    let is_clear = |lane: &[u8]| !lane.iter().fold(false, |any, byte| any | suspicious(*byte));
    // The characters of whole scripts start with these bytes. The second byte distinguishes almost
    // all of them from the suspicious ones.
    let is_common = |first: u8, second: Option<&u8>| {
        matches!(first, 0xcd | 0xd8 | 0xe1 | 0xe3)
            && !matches!(second, Some(0x85 | 0x8f | 0x9c | 0x9e | 0xa0))
    };
    let mut lane_start = 0;
    for lane in bytes.chunks(LANE_BYTES) {
        if !is_clear(lane) {
            let can_start_unsafe = |(at, byte): (usize, &u8)| {
                suspicious(*byte) && !is_common(*byte, bytes.get(lane_start + at + 1))
            };
            if let Some(at) = lane.iter().enumerate().position(can_start_unsafe) {
                return Some(lane_start + at);
            }
        }
        lane_start += lane.len();
    }
    None
}

/// Returns whether a reader sees the character, or sees that it is there: false for control
/// characters, invisible characters, and those that only modify the appearance of another one.
pub fn is_visible(c: char) -> bool {
    !is_forbidden(c) && !is_modifier(c) && !matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is never allowed in text.
fn is_forbidden(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        // Soft hyphen, grapheme joiner, fillers, inherent vowels, vowel separator, zero width
        // space.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{3164}'
        | '\u{ffa0}'
        // Directional marks, embeddings and overrides, invisible operators, isolates, deprecated
        // format characters.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Variation selectors except the two of emoji, the byte order mark, annotations, tags and
        // further selectors.
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

/// Returns whether a character only modifies the appearance of the one before it: joiners and
/// variation selectors.
fn is_modifier(c: char) -> bool {
    matches!(
        c,
        '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
    )
}

/// Returns whether `c` is a [modifier](is_modifier) after a character that it cannot modify, so
/// that it would be invisible.
fn is_dangling_modifier(previous: Option<char>, c: char) -> bool {
    if !is_modifier(c) {
        return false;
    }
    let Some(previous) = previous else {
        return true;
    };
    let is_allowed_after = match c {
        // Keycaps such as `1️⃣`, and emoji. A few emoji count as letters.
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_letter = previous.is_alphabetic()
                && !matches!(
                    previous,
                    '\u{2139}' | '\u{24c2}' | '\u{1f170}'..='\u{1f189}'
                );
            matches!(previous, '#' | '*' | '0'..='9')
                || (!previous.is_ascii() && !is_letter && !is_modifier(previous))
        }
        // A joiner between two emoji comes after the selector of the first.
        '\u{200d}' => !previous.is_ascii() && (previous == '\u{fe0f}' || !is_modifier(previous)),
        '\u{200c}' => !previous.is_ascii() && !is_modifier(previous),
        _ => matches!(previous, '\u{1820}'..='\u{18aa}'),
    };
    !is_allowed_after || previous.is_whitespace()
}

/// Skips the rest of an escape sequence: `ESC [ parameters final`, `ESC ] text BEL`, or one more
/// character.
fn skip_escape(first: char, rest: &mut std::str::Chars<'_>) {
    let kind = if first == '\u{9b}' {
        Some('[')
    } else {
        rest.as_str().chars().next()
    };
    match kind {
        Some('[') => {
            if first == '\u{1b}' {
                rest.next();
            }
            // Parameters and intermediate characters are 0x20 to 0x3f, the final character is 0x40
            // to 0x7e.
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
            // `ESC \` also ends it.
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
mod tests;
