//! Converts JSON values to CBOR (RFC 8949), and CBOR to JSON text.
//!
//! In JSON, a byte string is `{"$bytes": "…"}` in base64. A member name that begins with `$` is
//! escaped with another `$`, as in ACT's own programs.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ciborium_ll::{Decoder, Encoder, Error, Header};
use serde_json::{Map, Number, Value};
use toolbay_model::Interrupt;

/// Maximum nesting depth of arrays and maps. Parsers reject JSON that is nested twice as deep.
const MAX_DEPTH: usize = 64;

/// The member of an object that represents a byte string.
const BYTES_MEMBER: &str = "$bytes";

/// Number of items between two checks of the interrupt.
const INTERRUPT_INTERVAL: u32 = 256;

/// Maximum size of an item's head, in bytes.
const MAX_HEAD_BYTES: usize = 9;

/// The reason why CBOR was not converted to JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CborError {
    /// It is not valid CBOR, or has no representation in JSON. The text is a predicate: "ends in
    /// the middle".
    Malformed(&'static str),
    /// The JSON text would exceed its size limit.
    TooLarge,
    /// The conversion was interrupted.
    Interrupted,
}

/// Converts a JSON value to CBOR's core deterministic encoding: shortest heads and floats, keys in
/// bytewise order. A number with a fraction or an exponent stays a float, as in ACT's own programs.
///
/// # Errors
///
/// An object that represents a byte string is not base64, or two members have the same name.
pub(crate) fn from_json(value: &Value) -> Result<Vec<u8>, String> {
    let mut cbor = Vec::new();
    write_item(&mut cbor, value)?;
    Ok(cbor)
}

fn write_item(cbor: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    match value {
        Value::Null => write_head(cbor, Header::Simple(22)),
        Value::Bool(false) => write_head(cbor, Header::Simple(20)),
        Value::Bool(true) => write_head(cbor, Header::Simple(21)),
        Value::Number(number) => write_head(cbor, self::number_header(number)),
        Value::String(text) => write_text(cbor, text),
        Value::Array(items) => {
            write_head(cbor, Header::Array(Some(items.len())));
            items.iter().try_for_each(|item| write_item(cbor, item))?;
        }
        Value::Object(members) => {
            if let Some(bytes) = byte_string(members)? {
                write_head(cbor, Header::Bytes(Some(bytes.len())));
                cbor.extend_from_slice(&bytes);
                return Ok(());
            }
            let unescaped = |name: &'_ String| match name.strip_prefix('$') {
                Some(rest) if rest.starts_with('$') => rest.to_owned(),
                _ => name.clone(),
            };
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| (unescaped(name), value))
                .collect();
            // A longer key has a greater head.
            members.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
            if let Some([(name, _), _]) = members.array_windows().find(|[(a, _), (b, _)]| a == b) {
                return Err(format!(
                    "Two members are named {name:?} without the `$` before it."
                ));
            }
            write_head(cbor, Header::Map(Some(members.len())));
            for (name, value) in members {
                write_text(cbor, &name);
                write_item(cbor, value)?;
            }
        }
    }
    Ok(())
}

fn write_text(cbor: &mut Vec<u8>, text: &str) {
    write_head(cbor, Header::Text(Some(text.len())));
    cbor.extend_from_slice(text.as_bytes());
}

/// Writes the head of an item.
fn write_head(cbor: &mut Vec<u8>, header: Header) {
    let mut bytes = [0; MAX_HEAD_BYTES];
    let mut unused = bytes.as_mut_slice();
    // Every head fits into the buffer.
    let _written = Encoder::from(&mut unused).push(header);
    let length = MAX_HEAD_BYTES - unused.len();
    cbor.extend(bytes.iter().take(length));
}

fn number_header(number: &Number) -> Header {
    match (number.as_u64(), number.as_i64()) {
        (Some(n), _) => Header::Positive(n),
        // All bits of a negative number, inverted.
        (None, Some(n)) => Header::Negative(!n.cast_unsigned()),
        (None, None) => Header::Float(number.as_f64().unwrap_or_default()),
    }
}

/// Returns the byte string that an object represents, if it represents one.
fn byte_string(members: &Map<String, Value>) -> Result<Option<Vec<u8>>, String> {
    let Some(value) = members.get(BYTES_MEMBER).filter(|_| members.len() == 1) else {
        return Ok(None);
    };
    let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes
        .map(Some)
        .ok_or_else(|| format!("The value of {BYTES_MEMBER:?} is not a text in base64."))
}

/// Converts one item to JSON text of at most `max_bytes` bytes. Items without a JSON representation
/// are rejected, except `undefined` and non-finite numbers, which become `null`. Tags are omitted.
pub(crate) fn to_json(
    cbor: &[u8],
    max_bytes: usize,
    interrupt: &Interrupt,
) -> Result<String, CborError> {
    let mut reader = CborReader {
        rest: cbor,
        json: BoundedText {
            bytes: Vec::new(),
            max_bytes,
        },
        interrupt,
        items: 0,
    };
    let first = reader.read_header()?;
    reader.write_value(first, MAX_DEPTH)?;
    if !reader.rest.is_empty() {
        return Err(CborError::Malformed("continues after its end"));
    }
    String::from_utf8(reader.json.bytes)
        .map_err(|_| CborError::Malformed("has a text that is not UTF-8"))
}

/// The remaining input and the output of a conversion.
struct CborReader<'a> {
    rest: &'a [u8],
    json: BoundedText,
    interrupt: &'a Interrupt,
    /// Number of heads that were read.
    items: u32,
}

impl<'a> CborReader<'a> {
    /// Reads the head of the next item and skips its tags.
    fn read_header(&mut self) -> Result<Header, CborError> {
        loop {
            self.items = self.items.wrapping_add(1);
            if self.items.is_multiple_of(INTERRUPT_INTERVAL) && self.interrupt.is_due() {
                return Err(CborError::Interrupted);
            }
            let mut decoder = Decoder::from(self.rest);
            let header = decoder.pull().map_err(|error| match error {
                Error::Io(_) => CborError::Malformed(UNEXPECTED_END),
                Error::Syntax(_) => CborError::Malformed("has a byte with which no item begins"),
            })?;
            let length = decoder.offset();
            self.take_bytes(length)?;
            if !matches!(header, Header::Tag(_)) {
                return Ok(header);
            }
        }
    }

    fn take_bytes(&mut self, length: usize) -> Result<&'a [u8], CborError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(CborError::Malformed(UNEXPECTED_END))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Writes the item that begins with `header` and is nested at most `depth` levels deep.
    fn write_value(&mut self, header: Header, depth: usize) -> Result<(), CborError> {
        let inner_depth = || {
            depth
                .checked_sub(1)
                .ok_or(CborError::Malformed("is nested more than 64 levels deep"))
        };
        match header {
            Header::Positive(n) => self.json.write_json(n.to_string()),
            Header::Negative(n) => self.json.write_json((!i128::from(n)).to_string()),
            Header::Float(number) => match Number::from_f64(number) {
                Some(number) => self.json.write_json(number.to_string()),
                None => self.json.write_json("null"),
            },
            Header::Simple(20) => self.json.write_json("false"),
            Header::Simple(21) => self.json.write_json("true"),
            Header::Simple(22 | 23) => self.json.write_json("null"),
            Header::Simple(_) => Err(CborError::Malformed(
                "has a simple value that JSON does not have",
            )),
            Header::Bytes(length) => {
                let bytes = self.read_string(length, |header| match header {
                    Header::Bytes(length) => length,
                    _ => None,
                })?;
                self.json.write_json(format!(
                    "{{\"{BYTES_MEMBER}\":\"{}\"}}",
                    STANDARD.encode(bytes)
                ))
            }
            Header::Text(length) => {
                let text = self.read_text(length)?;
                self.json.write_string(&text)
            }
            Header::Array(length) => {
                let depth = inner_depth()?;
                self.json.write_json("[")?;
                self.read_items(length, |reader, header| reader.write_value(header, depth))?;
                self.json.write_json("]")
            }
            Header::Map(length) => {
                let depth = inner_depth()?;
                self.json.write_json("{")?;
                self.read_items(length, |reader, key| {
                    reader.write_key(key)?;
                    reader.json.write_json(":")?;
                    let value = reader.read_header()?;
                    reader.write_value(value, depth)
                })?;
                self.json.write_json("}")
            }
            Header::Break => Err(CborError::Malformed("has an end without a beginning")),
            // Unreachable, because `read_header` skips tags.
            Header::Tag(_) => Ok(()),
        }
    }

    /// Reads `length` items, or all items up to a break. Writes commas between them.
    fn read_items(
        &mut self,
        length: Option<usize>,
        mut read: impl FnMut(&mut Self, Header) -> Result<(), CborError>,
    ) -> Result<(), CborError> {
        let mut count = 0;
        while length != Some(count) {
            let header = self.read_header()?;
            if length.is_none() && header == Header::Break {
                break;
            }
            if count > 0 {
                self.json.write_json(",")?;
            }
            read(self, header)?;
            count += 1;
        }
        Ok(())
    }

    /// Writes the key of a member.
    fn write_key(&mut self, header: Header) -> Result<(), CborError> {
        match header {
            Header::Text(length) => {
                let text = self.read_text(length)?;
                if text.starts_with('$') {
                    self.json.write_string(&format!("${text}"))
                } else {
                    self.json.write_string(&text)
                }
            }
            Header::Positive(n) => self.json.write_json(format!("\"{n}\"")),
            Header::Negative(n) => self.json.write_json(format!("\"{}\"", !i128::from(n))),
            _ => Err(CborError::Malformed(
                "has a key that is neither a text nor an integer",
            )),
        }
    }

    fn read_text(&mut self, length: Option<usize>) -> Result<String, CborError> {
        let bytes = self.read_string(length, |header| match header {
            Header::Text(length) => length,
            _ => None,
        })?;
        String::from_utf8(bytes).map_err(|_| CborError::Malformed("has a text that is not UTF-8"))
    }

    /// Reads a string of known length, or all chunks of a string of unknown length. `chunk_length`
    /// returns the length of a chunk.
    fn read_string(
        &mut self,
        length: Option<usize>,
        chunk_length: impl Fn(Header) -> Option<usize>,
    ) -> Result<Vec<u8>, CborError> {
        if let Some(length) = length {
            return self.take_bytes(length).map(<[u8]>::to_vec);
        }
        let mut bytes = Vec::new();
        loop {
            match self.read_header()? {
                Header::Break => return Ok(bytes),
                header => {
                    let length = chunk_length(header).ok_or(CborError::Malformed(
                        "has a string with a piece of another kind",
                    ))?;
                    bytes.extend_from_slice(self.take_bytes(length)?);
                }
            }
        }
    }
}

const UNEXPECTED_END: &str = "ends in the middle of an item";

/// JSON text with a size limit.
struct BoundedText {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl BoundedText {
    fn write_json(&mut self, text: impl AsRef<str>) -> Result<(), CborError> {
        self.write_all(text.as_ref().as_bytes())
            .map_err(|_| CborError::TooLarge)
    }

    /// Writes a JSON string.
    fn write_string(&mut self, text: &str) -> Result<(), CborError> {
        serde_json::to_writer(self, text).map_err(|_| CborError::TooLarge)
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(bytes.len()) > self.max_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
