//! Ways to read a text in which a secret may be written otherwise: without line ends, unescaped, percent-decoded.
//!
//! A writer is free in what it escapes and how (`&`, `\u0026`, `%26`), so no list of spellings is complete. A reading
//! undoes the escapes, whichever they are, and knows where in the text each of its bytes stands.

use std::ops::Range;

/// A way to read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextReading {
    /// Without line feeds, carriage returns and tabs: long lines may have been wrapped.
    Unwrapped,
    /// Escapes with a backslash undone, as in JSON and in the literals of most languages: `\/`, `\u0026`, `\x26`.
    Unescaped,
    /// Percent-encoding undone (RFC 3986), in either case.
    Percent,
}

/// What a text starts with, and how many bytes of it that are.
enum TextPiece {
    /// These bytes stand for themselves.
    Plain(usize),
    /// So many bytes stand for this.
    Coded(usize, DecodedCharacter),
}

/// At most one character, as bytes.
struct DecodedCharacter {
    bytes: [u8; 4],
    count: usize,
}

impl TextReading {
    /// Whether any byte of `text` may stand for something else.
    pub(super) fn applies(self, text: &[u8]) -> bool {
        text.iter().any(|byte| self.marks(*byte))
    }

    /// The text as it is read.
    pub(super) fn read(self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let taken = match self.piece(rest) {
                TextPiece::Plain(length) => {
                    out.extend_from_slice(rest.get(..length).unwrap_or(rest));
                    length
                }
                TextPiece::Coded(length, decoded) => {
                    out.extend_from_slice(decoded.bytes.get(..decoded.count).unwrap_or_default());
                    length
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        out
    }

    /// Replaces each range of what is read by the range of `text` that it stands for. They are sorted, do not overlap and
    /// are not empty.
    pub(super) fn locate<'a>(self, text: &[u8], mut ranges: impl Iterator<Item = &'a mut Range<usize>>) {
        // Where the next piece is in the text and in what is read, and where the current range starts in the text.
        let (mut at, mut read, mut start) = (0, 0, None);
        let mut current = ranges.next();
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty() && current.is_some()) {
            let (length, count, plain) = match self.piece(rest) {
                TextPiece::Plain(length) => (length, length, true),
                TextPiece::Coded(length, decoded) => (length, decoded.count, false),
            };
            while let Some(range) = current.as_mut() {
                // Each plain byte has a place of its own; an escape is one place.
                if start.is_none() && range.start < read + count {
                    start = Some(if plain { at + (range.start - read) } else { at });
                }
                let Some(begun) = start.filter(|_| range.end <= read + count) else { break };
                **range = begun..if plain { at + (range.end - read) } else { at + length };
                (start, current) = (None, ranges.next());
            }
            at += length;
            read += count;
        }
    }

    /// The length of `text` without an escape at its end that may go on behind it.
    pub(super) fn whole(self, text: &[u8]) -> usize {
        let near = text.len().saturating_sub(LONGEST);
        let marked = |at: &usize| text.get(*at).is_some_and(|byte| self.marks(*byte));
        match (near..text.len()).rfind(marked) {
            // Of a run of backslashes any can be the first of an escape.
            Some(last) if self != Self::Unwrapped => {
                text.get(..last).unwrap_or_default().iter().rposition(|byte| !self.marks(*byte)).map_or(0, |at| at + 1)
            }
            _ => text.len(),
        }
    }

    fn marks(self, byte: u8) -> bool {
        match self {
            Self::Unwrapped => matches!(byte, b'\n' | b'\r' | b'\t'),
            Self::Unescaped => byte == b'\\',
            Self::Percent => byte == b'%',
        }
    }

    /// What `text`, which is not empty, starts with.
    fn piece(self, text: &[u8]) -> TextPiece {
        match text.iter().position(|byte| self.marks(*byte)) {
            None => TextPiece::Plain(text.len()),
            Some(0) => {
                let coded = match self {
                    Self::Unwrapped => Some((1, DecodedCharacter { bytes: [0; 4], count: 0 })),
                    Self::Unescaped => unescape(text),
                    Self::Percent => digits(text, 1, 2).map(|byte| (3, DecodedCharacter::byte(byte))),
                };
                // What is no escape stands for itself.
                coded.map_or(TextPiece::Plain(1), |(length, decoded)| TextPiece::Coded(length, decoded))
            }
            Some(plain) => TextPiece::Plain(plain),
        }
    }
}

/// The longest escape is a pair of surrogates, `\ud83d\ude00`.
const LONGEST: usize = 12;

impl DecodedCharacter {
    fn byte(code: u32) -> Self {
        let [.., byte] = code.to_be_bytes();
        Self { bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn char(c: char) -> Self {
        let mut bytes = [0; 4];
        let count = c.encode_utf8(&mut bytes).len();
        Self { bytes, count }
    }
}

/// What the escape at the start of `text` stands for, and its length; `None` if it is none.
fn unescape(text: &[u8]) -> Option<(usize, DecodedCharacter)> {
    let simple = |byte: u8| Some((2, DecodedCharacter { bytes: [byte, 0, 0, 0], count: 1 }));
    match *text.get(1)? {
        byte @ (b'\\' | b'/' | b'"' | b'\'' | b'`') => simple(byte),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'b' => simple(8),
        b'f' => simple(12),
        b'x' => Some((4, DecodedCharacter::byte(digits(text, 2, 2)?))),
        b'u' if text.get(2) == Some(&b'{') => {
            let count = text.iter().skip(3).take(7).position(|byte| *byte == b'}')?;
            Some((count + 4, DecodedCharacter::char(char::from_u32(digits(text, 3, count)?)?)))
        }
        b'u' => match digits(text, 2, 4)? {
            high @ 0xd800..0xdc00 if text.get(6..8) == Some(b"\\u") => {
                let low = digits(text, 8, 4).filter(|low| (0xdc00..0xe000).contains(low))?;
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                Some((12, DecodedCharacter::char(char::from_u32(code)?)))
            }
            code => Some((6, DecodedCharacter::char(char::from_u32(code)?))),
        },
        _ => None,
    }
}

/// The number that `count` hexadecimal digits from `at` on are.
fn digits(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text.get(at..at + count).filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_what_is_none_stays() {
        let cases = [
            (TextReading::Unescaped, r#"a\/b\u0026c\"\\\x41\u{e9}\ud83d\ude00\n"#, "a/b&c\"\\Aé😀\n"),
            (TextReading::Unescaped, r"\q\u00\ud83dx\u{}\x4\", r"\q\u00\ud83dx\u{}\x4\"),
            (TextReading::Percent, "a%26b%c3%BC%2525%%4", "a&bü%25%%4"),
            (TextReading::Unwrapped, "one\r\n\ttwo\n", "onetwo"),
        ];
        for (reading, text, expected) in cases {
            assert_eq!(String::from_utf8(reading.read(text.as_bytes())).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_read_is_found_in_the_text() {
        let (reading, text) = (TextReading::Unescaped, br"x\u0061b\/c\\d");
        let read = reading.read(text);
        assert_eq!(read, br"xab/c\d");
        for start in 0..read.len() {
            for end in start + 1..=read.len() {
                let mut ranges = vec![start..end, end..read.len()];
                ranges.retain(|range| !range.is_empty());
                reading.locate(text, ranges.iter_mut());
                let part = &text[ranges[0].clone()];
                assert_eq!(reading.read(part), read[start..end], "{start}..{end}");
                assert!(ranges.get(1).is_none_or(|next| *next == (ranges[0].end..text.len())), "{ranges:?}");
            }
        }
    }

    #[test]
    fn an_escape_that_may_go_on_is_not_whole() {
        for (text, whole) in [(r"abc\u00", 3), (r"abc\\\", 3), (r"abc", 3), (r"\", 0), (r"a\n0123456789012", 16)] {
            assert_eq!(TextReading::Unescaped.whole(text.as_bytes()), whole, "{text}");
        }
        assert_eq!(TextReading::Percent.whole(b"abc%2"), 3);
        assert_eq!(TextReading::Unwrapped.whole(b"abc\n"), 4);
    }
}
