//! JSON as text: its size is measured before it is parsed, and JSON that is only forwarded stays
//! text.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes of one value in a list. A growing list allocates capacity for more elements.
const VALUE_BYTES: u64 = 112;

/// Additional bytes of a list that has an element, or of an object that has a member.
const LIST_OVERHEAD_BYTES: u64 = 256;
const OBJECT_OVERHEAD_BYTES: u64 = 448;

/// Bytes of one member in addition to its value.
const MEMBER_OVERHEAD_BYTES: u64 = 96;

/// Bytes of a string in addition to its characters.
const STRING_OVERHEAD_BYTES: u64 = 40;

/// The size of a JSON text after parsing, measured without parsing it: a few bytes of text can take
/// hundreds of bytes as a value.
///
/// Exact for valid JSON. For invalid JSON it has no meaning, except that a parser does not exceed
/// it before it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonSize {
    /// The number of values, nested ones included.
    pub values: u64,
    /// Bytes of memory as [`Value`]s. An approximation that overestimates rather than
    /// underestimates.
    pub memory: u64,
}

impl JsonSize {
    /// Measures a text. Reads each byte once and allocates nothing.
    pub fn measure(text: &str) -> Self {
        let mut values = 0_u64;
        let mut members = 0;
        let mut strings = 0;
        let mut string_bytes = 0;
        let mut container_bytes = 0;
        // The last character outside of strings that is not white space.
        let mut previous = b' ';
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => continue,
                b'"' => {
                    values += 1;
                    strings += 1;
                    let (characters, after_string) = scan_string(rest);
                    string_bytes += characters;
                    rest = after_string;
                }
                b'{' | b'[' => values += 1,
                // The string that was counted before the colon is the member's name.
                b':' => {
                    values = values.saturating_sub(1);
                    members += 1;
                }
                b',' | b'}' | b']' => {}
                // The start of a number or a literal.
                _ if matches!(
                    previous,
                    b' ' | b'{' | b'[' | b':' | b',' | b'}' | b']' | b'"'
                ) =>
                {
                    values += 1;
                }
                _ => {}
            }
            container_bytes += match previous {
                b'{' if byte != b'}' => OBJECT_OVERHEAD_BYTES,
                b'[' if byte != b']' => LIST_OVERHEAD_BYTES,
                _ => 0,
            };
            previous = byte;
        }
        Self {
            values,
            memory: values * VALUE_BYTES
                + members * MEMBER_OVERHEAD_BYTES
                + strings * STRING_OVERHEAD_BYTES
                + string_bytes
                + container_bytes,
        }
    }
}

/// Returns the length of a string whose opening quotation mark has been consumed, and the text
/// after the string. An escape counts as one character.
fn scan_string(mut json: &[u8]) -> (u64, &[u8]) {
    let mut length = 0;
    while let Some(at) = memchr::memchr2(b'"', b'\\', json) {
        length += at as u64;
        if json.get(at) == Some(&b'"') {
            return (length, json.get(at + 1..).unwrap_or_default());
        }
        length += 1;
        json = json.get(at + 2..).unwrap_or_default();
    }
    (length + json.len() as u64, &[])
}

/// JSON that is only forwarded: text on one line, without spaces. Cheap to clone.
#[derive(Clone)]
pub struct JsonText(Arc<RawValue>);

impl JsonText {
    /// Serializes a value.
    pub fn new(value: &Value) -> Self {
        Self::from_serializable(value)
    }

    /// Serializes anything that can be written as JSON, and returns `null` for anything else.
    pub fn from_serializable(value: &impl Serialize) -> Self {
        let text =
            serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(text.into())
    }

    /// Returns the text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self::new(&value)
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

impl Eq for JsonText {}

impl Hash for JsonText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(value: &Value) -> u64 {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    #[test]
    fn every_value_is_counted_once() {
        let values = [
            json!(null),
            json!(-1.5e3),
            json!("a\\\" [{,:"),
            json!([]),
            json!({}),
            json!([[], [[]], {}, 1, "2", true]),
            json!({"a": 1, "b": [1, 2, 3], "\",:": {"c": null}}),
        ];
        for value in values {
            for text in [value.to_string(), format!("{value:#}")] {
                assert_eq!(JsonSize::measure(&text).values, count(&value), "{text}");
            }
        }
    }

    #[test]
    fn invalid_json_is_measured() {
        for text in ["", "::::", "\"", "\"\\", "]]}}", "{{{{", "\u{1b}é"] {
            let size = JsonSize::measure(text);
            assert!(size.values <= 4, "{text:?}: {size:?}");
        }
    }

    #[test]
    fn short_json_can_need_much_memory() {
        let mebibytes = |text: &str| JsonSize::measure(text).memory >> 20;
        let lists = format!("[{}[]]", "[],".repeat(1 << 20));
        assert!(
            (72..200).contains(&mebibytes(&lists)),
            "{}",
            mebibytes(&lists)
        );
        let objects = format!("[{}{{}}]", r#"{"":0},"#.repeat(1 << 20));
        assert!(
            (400..1000).contains(&mebibytes(&objects)),
            "{}",
            mebibytes(&objects)
        );
        let text = format!(r#""{}""#, "x".repeat(1 << 20));
        assert_eq!(mebibytes(&text), 1);
    }

    #[test]
    fn forwarded_json_is_one_line() {
        let json = JsonText::from(json!({"b": "one\ntwo", "a": [1, 2]}));
        assert_eq!(json.get(), r#"{"b":"one\ntwo","a":[1,2]}"#);
        assert_eq!(
            serde_json::to_string(&[&json]).unwrap(),
            format!("[{}]", json.get())
        );
    }
}
