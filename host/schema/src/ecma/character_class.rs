//! Classes of characters, such as `[a-z]`.

use super::character_escape::parse_character_escape;
use super::pattern_cursor::{PatternCursor, PatternError, pattern_error};
use super::suggestions::posix_class;

/// Parses a class, from its `[` to its `]`.
pub(super) fn parse_class(cursor: &mut PatternCursor) -> Result<(), PatternError> {
    let start = cursor.position;
    cursor.position += if cursor.peek(1) == Some('^') { 2 } else { 1 };
    let content_start = cursor.position;
    loop {
        match cursor.peek(0) {
            None => {
                return Err(pattern_error(
                    start,
                    1,
                    "it is not closed; add \"]\", or write \"\\\\[\" for the character",
                ));
            }
            Some(']') => break,
            Some(_) => {}
        }
        let first_at = cursor.position;
        let first = parse_class_atom(cursor)?;
        if cursor.peek(0) != Some('-') || matches!(cursor.peek(1), None | Some(']')) {
            continue;
        }
        cursor.position += 1;
        let last = parse_class_atom(cursor)?;
        let length = cursor.position - first_at;
        match (first, last) {
            (Some(first), Some(last)) if first <= last => {}
            (Some(_), Some(_)) => {
                return Err(pattern_error(
                    first_at,
                    length,
                    "the range is empty; exchange its ends",
                ));
            }
            _ => {
                let replacement =
                    "a class has no range to another class; write \"\\\\-\" for the character";
                return Err(pattern_error(first_at, length, replacement));
            }
        }
    }
    if cursor.position == content_start {
        // A class without characters matches nothing, and its negation matches everything.
        let negation = if content_start - start == 1 { "^" } else { "" };
        cursor.rewrites.push((
            start,
            content_start + 1 - start,
            format!("[{negation}\\x00-\\u{{10ffff}}]"),
        ));
    }
    cursor.position += 1;
    Ok(())
}

/// Parses a character of a class. Returns `None` for an escape that matches several characters.
fn parse_class_atom(cursor: &mut PatternCursor) -> Result<Option<u32>, PatternError> {
    match (cursor.peek(0), cursor.peek(1)) {
        (Some('\\'), Some('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
            cursor.position += 2;
            Ok(None)
        }
        (Some('\\'), Some('b')) => {
            cursor
                .rewrites
                .push((cursor.position, 2, "\\x08".to_owned()));
            cursor.position += 2;
            Ok(Some(8))
        }
        (Some('\\'), Some('-')) => {
            cursor.position += 2;
            Ok(Some(u32::from('-')))
        }
        (Some('\\'), Some('B' | 'k' | '1'..='9')) => Err(pattern_error(
            cursor.position,
            2,
            "a class has no such escape; leave the \"\\\\\" out",
        )),
        (Some('\\'), _) => parse_character_escape(cursor),
        (Some('['), Some(':')) => {
            // Stop at the first character that cannot belong to a name. A class can contain
            // such a beginning at each of its characters, so searching for the end would be
            // quadratic.
            let name = cursor.text_while(2, |c| c.is_ascii_alphabetic() || c == '^');
            let end = 2 + name.len();
            if (cursor.peek(end), cursor.peek(end + 1)) != (Some(':'), Some(']')) {
                cursor.position += 1;
                return Ok(Some(u32::from('[')));
            }
            let replacement = posix_class(&name).map_or_else(
                || "there are no classes with names; write the characters".to_owned(),
                |characters| format!("there are no classes with names; write {characters:?}"),
            );
            Err(pattern_error(cursor.position, 4 + name.len(), &replacement))
        }
        (c, _) => {
            cursor.position += 1;
            Ok(c.map(u32::from))
        }
    }
}
