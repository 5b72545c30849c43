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
    Large,
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
    put(&mut cbor, value)?;
    Ok(cbor)
}

fn put(cbor: &mut Vec<u8>, value: &Value) -> Result<(), String> {
    match value {
        Value::Null => write_head(cbor, Header::Simple(22)),
        Value::Bool(false) => write_head(cbor, Header::Simple(20)),
        Value::Bool(true) => write_head(cbor, Header::Simple(21)),
        Value::Number(number) => write_head(cbor, self::number_header(number)),
        Value::String(text) => write_text(cbor, text),
        Value::Array(items) => {
            write_head(cbor, Header::Array(Some(items.len())));
            items.iter().try_for_each(|item| put(cbor, item))?;
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
                put(cbor, value)?;
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
    let mut room = bytes.as_mut_slice();
    // Every head fits into the buffer.
    let _written = Encoder::from(&mut room).push(header);
    let length = MAX_HEAD_BYTES - room.len();
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

/// Converts one item to JSON text of at most `most` bytes. Items without a JSON representation are
/// rejected, except `undefined` and non-finite numbers, which become `null`. Tags are omitted.
pub(crate) fn to_json(
    cbor: &[u8],
    most: usize,
    interrupt: &Interrupt,
) -> Result<String, CborError> {
    let mut reading = CborReader {
        rest: cbor,
        json: BoundedText {
            bytes: Vec::new(),
            most,
        },
        interrupt,
        items: 0,
    };
    let first = reading.read_header()?;
    reading.write_value(first, MAX_DEPTH)?;
    if !reading.rest.is_empty() {
        return Err(CborError::Malformed("goes on after its end"));
    }
    String::from_utf8(reading.json.bytes)
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
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(CborError::Malformed(UNEXPECTED_END))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Writes the item that begins with `read_header` and is nested at most `depth` levels deep.
    fn write_value(&mut self, header: Header, depth: usize) -> Result<(), CborError> {
        let inner = || {
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
                let depth = inner()?;
                self.json.write_json("[")?;
                self.read_items(length, |reading, header| reading.write_value(header, depth))?;
                self.json.write_json("]")
            }
            Header::Map(length) => {
                let depth = inner()?;
                self.json.write_json("{")?;
                self.read_items(length, |reading, key| {
                    reading.write_key(key)?;
                    reading.json.write_json(":")?;
                    let value = reading.read_header()?;
                    reading.write_value(value, depth)
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

    /// Reads a string of known length, or all chunks of one without. `piece` returns the length of
    /// a chunk.
    fn read_string(
        &mut self,
        length: Option<usize>,
        piece: impl Fn(Header) -> Option<usize>,
    ) -> Result<Vec<u8>, CborError> {
        if let Some(length) = length {
            return self.take_bytes(length).map(<[u8]>::to_vec);
        }
        let mut bytes = Vec::new();
        loop {
            match self.read_header()? {
                Header::Break => return Ok(bytes),
                header => {
                    let length = piece(header).ok_or(CborError::Malformed(
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
    most: usize,
}

impl BoundedText {
    fn write_json(&mut self, text: impl AsRef<str>) -> Result<(), CborError> {
        self.write_all(text.as_ref().as_bytes())
            .map_err(|_| CborError::Large)
    }

    /// Writes a JSON string.
    fn write_string(&mut self, text: &str) -> Result<(), CborError> {
        serde_json::to_writer(self, text).map_err(|_| CborError::Large)
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(bytes.len()) > self.most {
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        hex::decode(text).unwrap()
    }

    fn read(text: &str) -> Result<String, CborError> {
        to_json(&hex(text), 1000, &Interrupt::default())
    }

    fn malformed(text: &str) -> &'static str {
        match read(text) {
            Err(CborError::Malformed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Appendix A of RFC 8949, as far as JSON can represent it.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        let cases = [
            ("00", "0"),
            ("1bffffffffffffffff", "18446744073709551615"),
            ("3bffffffffffffffff", "-18446744073709551616"),
            ("20", "-1"),
            ("f93c00", "1.0"),
            ("fb3ff199999999999a", "1.1"),
            ("fa7f7fffff", "3.4028234663852886e+38"),
            ("f97c00", "null"),
            ("f97e00", "null"),
            ("f4", "false"),
            ("f5", "true"),
            ("f6", "null"),
            ("f7", "null"),
            (
                "c074323031332d30332d32315432303a30343a30305a",
                "\"2013-03-21T20:04:00Z\"",
            ),
            ("4401020304", "{\"$bytes\":\"AQIDBA==\"}"),
            ("62225c", r#""\"\\""#),
            ("64f0908591", "\"\u{10151}\""),
            ("80", "[]"),
            ("8301820203820405", "[1,[2,3],[4,5]]"),
            ("a0", "{}"),
            ("a201020304", r#"{"1":2,"3":4}"#),
            ("a26161016162820203", r#"{"a":1,"b":[2,3]}"#),
            ("5f42010243030405ff", "{\"$bytes\":\"AQIDBAU=\"}"),
            ("7f657374726561646d696e67ff", "\"streaming\""),
            // Chunks that end in the middle of a character are joined.
            ("7f61c361a9ff", "\"é\""),
            ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
            ("bf6346756ef563416d7421ff", r#"{"Fun":true,"Amt":-2}"#),
            ("a162246101", r#"{"$$a":1}"#),
        ];
        for (cbor, json) in cases {
            assert_eq!(read(cbor).as_deref(), Ok(json), "{cbor}");
        }
    }

    #[test]
    fn what_is_no_cbor_or_no_json_is_refused() {
        let cases = [
            ("", UNEXPECTED_END),
            ("61", UNEXPECTED_END),
            ("18", UNEXPECTED_END),
            ("8201", UNEXPECTED_END),
            ("9f01", UNEXPECTED_END),
            ("c0", UNEXPECTED_END),
            ("5bffffffffffffffff00", UNEXPECTED_END),
            ("9bffffffffffffffff", UNEXPECTED_END),
            ("1c", "has a byte with which no item begins"),
            ("61ff", "has a text that is not UTF-8"),
            ("7f4161ff", "has a string with a piece of another kind"),
            ("7f7f6161ffff", "has a string with a piece of another kind"),
            ("a1f501", "has a key that is neither a text nor an integer"),
            ("a16161ff", "has an end without a beginning"),
            ("ff", "has an end without a beginning"),
            ("f0", "has a simple value that JSON does not have"),
            ("0000", "goes on after its end"),
        ];
        for (cbor, why) in cases {
            assert_eq!(malformed(cbor), why, "{cbor}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let nested = |depth: usize| format!("{}80", "81".repeat(depth - 1));
        assert_eq!(read(&nested(64)).unwrap().len(), 128);
        assert_eq!(malformed(&nested(65)), "is nested more than 64 levels deep");
        let endless = [vec![0x81; 10_000_000], vec![0x80]].concat();
        let refused = Err(CborError::Malformed("is nested more than 64 levels deep"));
        assert_eq!(
            to_json(&endless, usize::MAX, &Interrupt::default()),
            refused
        );
        let tags = [vec![0xc0; 10_000_000], vec![0x80]].concat();
        assert_eq!(
            to_json(&tags, 2, &Interrupt::default()).as_deref(),
            Ok("[]")
        );
        for large in ["\u{1}\u{1}", "é", "\\"] {
            let cbor = from_json(&json!([large])).unwrap();
            let length = to_json(&cbor, usize::MAX, &Interrupt::default())
                .unwrap()
                .len();
            assert!(to_json(&cbor, length, &Interrupt::default()).is_ok());
            assert_eq!(
                to_json(&cbor, length - 1, &Interrupt::default()),
                Err(CborError::Large)
            );
        }
    }

    #[test]
    fn reading_stops_when_it_is_interrupted() {
        let cbor = [vec![0x99, 0x04, 0x00], vec![0xf6; 1024]].concat();
        let interrupt = Interrupt::default();
        assert!(to_json(&cbor, usize::MAX, &interrupt).is_ok());
        interrupt.raise();
        assert_eq!(
            to_json(&cbor, usize::MAX, &interrupt),
            Err(CborError::Interrupted)
        );
    }

    #[test]
    fn what_is_written_is_deterministic() {
        let cases = [
            (
                json!({"b": 1, "aa": 2, "a": 3, "": 4}),
                "a4600461610361620162616102",
            ),
            (json!(23), "17"),
            (json!(24), "1818"),
            (json!(u64::MAX), "1bffffffffffffffff"),
            (json!(-1), "20"),
            (json!(i64::MIN), "3b7fffffffffffffff"),
            (json!(1.0), "f93c00"),
            (json!(100_000.0), "fa47c35000"),
            (json!(1.1), "fb3ff199999999999a"),
            (json!([null, true, false]), "83f6f5f4"),
            (json!({"$bytes": "AQIDBA=="}), "4401020304"),
            (
                json!({"$bytes": "AQ==", "a": 1}),
                "a2616101662462797465736441513d3d",
            ),
            (json!({"$$a": 1}), "a162246101"),
        ];
        for (value, cbor) in cases {
            assert_eq!(hex::encode(from_json(&value).unwrap()), cbor, "{value}");
        }
        for wrong in [json!({"$bytes": "?"}), json!({"$bytes": 1})] {
            assert!(from_json(&wrong).unwrap_err().contains("base64"));
        }
        assert!(
            from_json(&json!({"$a": 1, "$$a": 2}))
                .unwrap_err()
                .contains("\"$a\"")
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(r"(\$\$)?[a-z]{0,2}", inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(value in values()) {
            let cbor = from_json(&value).unwrap();
            let json = to_json(&cbor, usize::MAX, &Interrupt::default()).unwrap();
            let read: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(from_json(&read).unwrap(), cbor);
        }

        #[test]
        fn any_bytes_become_json_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(json) = to_json(&bytes, 4000, &Interrupt::default()) {
                prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
