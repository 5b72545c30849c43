//! Estimates the memory that JSON takes once it is decoded, from its text, in one pass.

/// Size of a non-empty array, in bytes: capacity for four values of 72 bytes each.
const ARRAY_BYTES: usize = 4 * 72;

/// Size of a non-empty object, in bytes: capacity for four members of 104 bytes each, and a table
/// of their names.
const OBJECT_BYTES: usize = 4 * 104 + 96;

/// Size of a further value or member, in bytes: 104 bytes and an entry in the table of names. The
/// capacity doubles when it is used up, so up to a half of it may be empty. Values of arrays, which
/// are smaller, compensate for that.
const ELEMENT_BYTES: usize = 128;

/// Returns the approximate size of the decoded values of this JSON, in bytes. A string counts as
/// the length of its text.
pub(crate) fn decoded_size(json: &str) -> usize {
    let mut size = json.len();
    let mut container_bytes = 0;
    let mut rest = json.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        // An empty array or object needs no allocation.
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b']' | b'}' => container_bytes = 0,
            _ => size += std::mem::take(&mut container_bytes),
        }
        match byte {
            b'"' => rest = skip_string(rest),
            b'[' => container_bytes = ARRAY_BYTES,
            b'{' => container_bytes = OBJECT_BYTES,
            b',' => size += ELEMENT_BYTES,
            _ => {}
        }
    }
    size
}

/// Skips the rest of a string whose opening quotation mark is already consumed, and returns the
/// text after it. Most text of a request is in strings.
fn skip_string(mut json: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', json) {
        if json.get(at) == Some(&b'"') {
            return json.get(at + 1..).unwrap_or_default();
        }
        // Skip the escaped character too.
        json = json.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    /// Returns the size of a value, counted on the value itself.
    fn real(value: &Value) -> usize {
        match value {
            Value::Array(items) => {
                items.capacity() * size_of::<Value>() + items.iter().map(real).sum::<usize>()
            }
            // `Map` does not expose its capacity: assume its length.
            Value::Object(members) if !members.is_empty() => {
                let room = members.len().max(4);
                room * (size_of::<String>() + size_of::<Value>() + 8 + 9)
                    + members
                        .iter()
                        .map(|(name, value)| name.capacity() + real(value))
                        .sum::<usize>()
            }
            Value::String(text) => text.capacity(),
            _ => 0,
        }
    }

    #[test]
    fn values_are_not_larger_than_assumed() {
        assert!(size_of::<Value>() <= 72, "{}", size_of::<Value>());
        assert!(size_of::<Map<String, Value>>() <= 72);
    }

    #[test]
    fn small_text_with_large_values_is_detected() {
        let many = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
        for (item, factor) in [
            ("0", 30),
            ("[]", 20),
            ("{}", 20),
            ("[0]", 50),
            ("{\"\":0}", 70),
            ("[[[[[0]]]]]", 100),
        ] {
            let text = many(item, 10_000);
            let estimate = decoded_size(&text);
            let real = real(&serde_json::from_str(&text).unwrap());
            assert!(estimate >= real * 3 / 4, "{item}: {estimate} and {real}");
            assert!(
                estimate <= real * 3 + text.len(),
                "{item}: {estimate} and {real}"
            );
            assert!(
                estimate > text.len() * factor,
                "{item}: {estimate} of {}",
                text.len()
            );
        }
    }

    #[test]
    fn text_counts_with_its_length() {
        for text in [
            r#""a,b,[{""#,
            r#""\",[[[{{{,\\\"""#,
            "7",
            " \n",
            "[ ]",
            "{\n}",
        ] {
            assert_eq!(decoded_size(text), text.len(), "{text}");
        }
        assert_eq!(decoded_size(r#"["\\",0]"#), 8 + ARRAY_BYTES + ELEMENT_BYTES);
    }
}
