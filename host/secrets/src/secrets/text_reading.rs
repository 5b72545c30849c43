//! Decoded readings of a text that may contain an encoded secret: without line ends, unescaped,
//! percent-decoded.
//!
//! Writers differ in the characters that they escape and in the form (`&`, `\u0026`, `%26`), so no
//! list of spellings is complete. A reading decodes all escapes and maps each decoded byte to its
//! position in the text.

use std::ops::Range;

/// Method of decoding a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextReading {
    /// Removes line feeds, carriage returns and tabs: long lines may have been wrapped.
    Unwrapped,
    /// Decodes backslash escapes, as in JSON and in the literals of most languages: `\/`, `\u0026`,
    /// `\x26`.
    Unescaped,
    /// Decodes percent-encoding (RFC 3986), with digits in either case.
    PercentDecoded,
}

/// Next piece of a text, with its length in bytes.
enum TextPiece {
    /// Bytes without an escape.
    Plain(usize),
    /// Escape, with the character that it encodes.
    Encoded(usize, DecodedCharacter),
}

/// Decoded character, as bytes. Empty if the escape is only removed.
struct DecodedCharacter {
    bytes: [u8; 4],
    count: usize,
}

impl TextReading {
    /// Returns whether `text` may contain encoded bytes.
    pub(super) fn is_applicable(self, text: &[u8]) -> bool {
        text.iter().any(|byte| self.is_marker(*byte))
    }

    /// Decodes the text.
    pub(super) fn decode(self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let consumed = match self.next_piece(rest) {
                TextPiece::Plain(length) => {
                    out.extend_from_slice(rest.get(..length).unwrap_or(rest));
                    length
                }
                TextPiece::Encoded(length, decoded) => {
                    out.extend_from_slice(decoded.bytes.get(..decoded.count).unwrap_or_default());
                    length
                }
            };
            rest = rest.get(consumed..).unwrap_or_default();
        }
        out
    }

    /// Maps each range of the decoded text to the corresponding range of `text`. The ranges are
    /// sorted, do not overlap and are not empty.
    pub(super) fn map_ranges<'a>(
        self,
        text: &[u8],
        mut ranges: impl Iterator<Item = &'a mut Range<usize>>,
    ) {
        // `text_position` and `decoded_position` are the positions of the next piece in the text
        // and in the decoded text. `start` is the start of the current range in the text.
        let mut text_position = 0;
        let mut decoded_position = 0;
        let mut start = None;
        let mut current = ranges.next();
        while let Some(rest) = text
            .get(text_position..)
            .filter(|rest| !rest.is_empty() && current.is_some())
        {
            let (length, count, is_plain) = match self.next_piece(rest) {
                TextPiece::Plain(length) => (length, length, true),
                TextPiece::Encoded(length, decoded) => (length, decoded.count, false),
            };
            while let Some(range) = current.as_mut() {
                // A range can start or end within plain bytes, but not within an escape.
                if start.is_none() && range.start < decoded_position + count {
                    start = Some(if is_plain {
                        text_position + (range.start - decoded_position)
                    } else {
                        text_position
                    });
                }
                let Some(range_start) = start.filter(|_| range.end <= decoded_position + count)
                else {
                    break;
                };
                **range = range_start..if is_plain {
                    text_position + (range.end - decoded_position)
                } else {
                    text_position + length
                };
                (start, current) = (None, ranges.next());
            }
            text_position += length;
            decoded_position += count;
        }
    }

    /// Returns the length of `text` without an escape at its end that may be incomplete.
    pub(super) fn complete_length(self, text: &[u8]) -> usize {
        let search_start = text.len().saturating_sub(MAX_ESCAPE_BYTES);
        let is_marked = |at: &usize| text.get(*at).is_some_and(|byte| self.is_marker(*byte));
        match (search_start..text.len()).rfind(is_marked) {
            // In a run of backslashes, each can be the first of an escape.
            Some(last) if self != Self::Unwrapped => text
                .get(..last)
                .unwrap_or_default()
                .iter()
                .rposition(|byte| !self.is_marker(*byte))
                .map_or(0, |at| at + 1),
            _ => text.len(),
        }
    }

    fn is_marker(self, byte: u8) -> bool {
        match self {
            Self::Unwrapped => matches!(byte, b'\n' | b'\r' | b'\t'),
            Self::Unescaped => byte == b'\\',
            Self::PercentDecoded => byte == b'%',
        }
    }

    /// Returns the first piece of `text`, which must not be empty.
    fn next_piece(self, text: &[u8]) -> TextPiece {
        match text.iter().position(|byte| self.is_marker(*byte)) {
            None => TextPiece::Plain(text.len()),
            Some(0) => {
                let escape = match self {
                    Self::Unwrapped => Some((
                        1,
                        DecodedCharacter {
                            bytes: [0; 4],
                            count: 0,
                        },
                    )),
                    Self::Unescaped => decode_escape(text),
                    Self::PercentDecoded => {
                        parse_hex(text, 1, 2).map(|byte| (3, DecodedCharacter::from_byte(byte)))
                    }
                };
                // A marker that starts no valid escape is a plain byte.
                escape.map_or(TextPiece::Plain(1), |(length, decoded)| {
                    TextPiece::Encoded(length, decoded)
                })
            }
            Some(plain) => TextPiece::Plain(plain),
        }
    }
}

/// Maximum length of an escape, in bytes: a surrogate pair, `\ud83d\ude00`.
const MAX_ESCAPE_BYTES: usize = 12;

impl DecodedCharacter {
    fn from_byte(code: u32) -> Self {
        let [.., byte] = code.to_be_bytes();
        Self {
            bytes: [byte, 0, 0, 0],
            count: 1,
        }
    }

    fn from_char(c: char) -> Self {
        let mut bytes = [0; 4];
        let count = c.encode_utf8(&mut bytes).len();
        Self { bytes, count }
    }
}

/// Decodes the escape at the start of `text`. Returns its length and the character; `None` if it is
/// invalid.
fn decode_escape(text: &[u8]) -> Option<(usize, DecodedCharacter)> {
    let simple = |byte: u8| {
        Some((
            2,
            DecodedCharacter {
                bytes: [byte, 0, 0, 0],
                count: 1,
            },
        ))
    };
    match *text.get(1)? {
        byte @ (b'\\' | b'/' | b'"' | b'\'' | b'`') => simple(byte),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'b' => simple(8),
        b'f' => simple(12),
        b'x' => Some((4, DecodedCharacter::from_byte(parse_hex(text, 2, 2)?))),
        b'u' if text.get(2) == Some(&b'{') => {
            let count = text.iter().skip(3).take(7).position(|byte| *byte == b'}')?;
            Some((
                count + 4,
                DecodedCharacter::from_char(char::from_u32(parse_hex(text, 3, count)?)?),
            ))
        }
        b'u' => match parse_hex(text, 2, 4)? {
            high @ 0xd800..0xdc00 if text.get(6..8) == Some(b"\\u") => {
                let low = parse_hex(text, 8, 4).filter(|low| (0xdc00..0xe000).contains(low))?;
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                Some((12, DecodedCharacter::from_char(char::from_u32(code)?)))
            }
            code => Some((6, DecodedCharacter::from_char(char::from_u32(code)?))),
        },
        _ => None,
    }
}

/// Parses `count` hexadecimal digits that start at `at`.
fn parse_hex(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text
        .get(at..at + count)
        .filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests;
