//! Escapes for one character, or for a property of characters.

use super::pattern_cursor::{PatternCursor, PatternError, pattern_error};
use super::suggestions::{suggest_escape, suggest_property};

/// Parses an escape for one character, or for a property. Returns the code of the character;
/// `None` for a property.
pub(super) fn parse_character_escape(
    cursor: &mut PatternCursor,
) -> Result<Option<u32>, PatternError> {
    let start = cursor.position;
    let Some(c) = cursor.peek(1) else {
        return Err(pattern_error(
            start,
            1,
            "write \"\\\\\\\\\" for the character",
        ));
    };
    let (length, code) = match c {
        'f' => (2, Some(0xc)),
        'n' => (2, Some(0xa)),
        'r' => (2, Some(0xd)),
        't' => (2, Some(0x9)),
        'v' => (2, Some(0xb)),
        'c' if cursor.peek(2).is_some_and(|c| c.is_ascii_alphabetic()) => {
            (3, cursor.peek(2).map(|c| u32::from(c) % 32))
        }
        '0' if !cursor.peek(2).is_some_and(|c| c.is_ascii_digit()) => {
            cursor.rewrites.push((start, 2, "\\x00".to_owned()));
            (2, Some(0))
        }
        'x' if hex_code(cursor, 2, 2).is_some() => (4, hex_code(cursor, 2, 2)),
        'u' if cursor.peek(2) == Some('{') => parse_braced_code(cursor)?,
        'u' if hex_code(cursor, 2, 4).is_some() => parse_code_unit(cursor),
        'p' | 'P' if cursor.peek(2) == Some('{') => {
            let inner = cursor.text_until(3, '}').unwrap_or_default();
            let length = 4 + inner.chars().count();
            if let Some(replacement) = suggest_property(&inner) {
                return Err(pattern_error(start, length, &replacement));
            }
            (length, None)
        }
        '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
        | '/' => (2, Some(u32::from(c))),
        _ => {
            let (length, replacement) = suggest_escape(cursor, c);
            return Err(pattern_error(start, length, &replacement));
        }
    };
    cursor.position += length;
    Ok(code)
}

/// Returns the length and the code of an escape such as `\u{1f600}`.
fn parse_braced_code(cursor: &PatternCursor) -> Result<(usize, Option<u32>), PatternError> {
    let inner = cursor.text_until(3, '}').unwrap_or_default();
    let code = u32::from_str_radix(&inner, 16)
        .ok()
        .filter(|code| *code <= 0x10_ffff);
    let Some(code) = code.filter(|_| inner.bytes().all(|byte| byte.is_ascii_hexdigit())) else {
        return Err(pattern_error(
            cursor.position,
            3,
            "write the code of a character, such as \"\\\\u{1f600}\"",
        ));
    };
    Ok((4 + inner.len(), Some(code)))
}

/// Returns the length and the code of an escape such as `\u0041`, or of two that are a pair of
/// surrogates.
fn parse_code_unit(cursor: &mut PatternCursor) -> (usize, Option<u32>) {
    let low = if cursor.peek(6) == Some('\\') && cursor.peek(7) == Some('u') {
        hex_code(cursor, 8, 4)
    } else {
        None
    };
    match (hex_code(cursor, 2, 4), low) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            cursor
                .rewrites
                .push((cursor.position, 12, format!("\\u{{{code:x}}}")));
            (12, Some(code))
        }
        (code, _) => (6, code),
    }
}

/// Returns the value of this number of hexadecimal digits; `None` if there are fewer.
fn hex_code(cursor: &PatternCursor, ahead: usize, digits: usize) -> Option<u32> {
    let start = cursor.position + ahead;
    let text: String = cursor.chars().get(start..start + digits)?.iter().collect();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(&text, 16).ok().filter(|_| is_hex)
}
