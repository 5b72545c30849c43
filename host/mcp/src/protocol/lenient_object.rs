//! Lenient deserialization of objects. Some clients send `null`, and languages without empty
//! objects send an empty list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Deserializes an object. `null` and an empty list count as an object without members.
///
/// # Errors
///
/// Returns an error for any other type, or an invalid object.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(LenientObject(PhantomData))
}

/// Description of the values that [`object`] accepts, in its errors.
pub(crate) const OBJECT_DESCRIPTION: &str = "an object";

/// Returns the type of a JSON value, for error messages.
pub(crate) fn json_type(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Returns whether a JSON value is a list without items.
pub(crate) fn is_empty_list(json: &str) -> bool {
    json.strip_prefix('[')
        .is_some_and(|rest| rest.trim_ascii_start() == "]")
}

struct LenientObject<T>(PhantomData<T>);

impl<'de, T: Default + Deserialize<'de>> Visitor<'de> for LenientObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OBJECT_DESCRIPTION)
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        match list.next_element::<IgnoredAny>()? {
            None => Ok(T::default()),
            Some(_) => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    struct Params<'a> {
        #[serde(default, deserialize_with = "object")]
        named: BTreeMap<String, u8>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    fn named(text: &str) -> Result<BTreeMap<String, u8>, String> {
        serde_json::from_str(text)
            .map(|Params { named, .. }| named)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn null_and_an_empty_list_are_an_object_without_members() {
        for text in [
            "{}",
            r#"{"named": null}"#,
            r#"{"named": []}"#,
            r#"{"named": [ ]}"#,
            r#"{"named": {}}"#,
        ] {
            assert_eq!(named(text), Ok(BTreeMap::new()), "{text}");
        }
        assert_eq!(
            named(r#"{"named": {"a": 1}}"#),
            Ok([("a".to_owned(), 1)].into())
        );
        for text in [
            r#"{"named": [1]}"#,
            r#"{"named": "x"}"#,
            r#"{"named": 0}"#,
            r#"{"named": false}"#,
        ] {
            let refused = named(text).unwrap_err();
            assert!(refused.contains("expected an object"), "{text}: {refused}");
        }
    }

    #[test]
    fn members_of_a_lenient_object_are_parsed_strictly() {
        #[derive(Debug, Deserialize)]
        struct Outer<'a> {
            #[serde(borrow, deserialize_with = "object")]
            inner: Params<'a>,
        }
        let Outer { inner } = serde_json::from_str(r#"{"inner": {"raw": [1, {"a":2}]}}"#).unwrap();
        assert_eq!(inner.raw.unwrap().get(), r#"[1, {"a":2}]"#);
    }
}
