//! Reads metadata: named CBOR values, most of which are optional.

use serde_json::Value;
use toolbay_model::Interrupt;

use super::types::{ActMetadata, LocalizedString};
use crate::reply::cbor::{self, CborError};

/// Maximum size of a value as JSON, in bytes.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// The preferred language of localized text.
const PREFERRED_LANGUAGE: &str = "en";

/// Returns the value with this name, or `None` if it is absent.
///
/// # Errors
///
/// The reason why the value cannot be read.
fn read_value(metadata: &ActMetadata, name: &str) -> Option<Result<Value, &'static str>> {
    let (_, cbor) = metadata.iter().find(|(key, _)| key == name)?;
    let json =
        cbor::to_json(cbor, MAX_VALUE_BYTES, &Interrupt::default()).map_err(|error| match error {
            CborError::Malformed(why) => why,
            CborError::TooLarge | CborError::Interrupted => "is too large",
        });
    Some(json.and_then(|json| serde_json::from_str(&json).map_err(|_| "is not a value")))
}

/// Returns a number, or `None` if it is absent or not a number.
pub(super) fn read_number(metadata: &ActMetadata, name: &str) -> Option<f64> {
    read_value(metadata, name)?.ok()?.as_f64()
}

/// Returns a Boolean, or `None` if it is absent.
pub(super) fn read_flag(metadata: &ActMetadata, name: &str) -> Result<Option<bool>, String> {
    match read_value(metadata, name) {
        None => Ok(None),
        Some(Ok(Value::Bool(flag))) => Ok(Some(flag)),
        Some(Ok(_)) => Err(format!("{name} is neither true nor false")),
        Some(Err(why)) => Err(format!("{name} {why}")),
    }
}

/// Returns a text for people, which can be localized.
pub(super) fn read_text(metadata: &ActMetadata, name: &str) -> Result<Option<String>, String> {
    match read_value(metadata, name) {
        None => Ok(None),
        Some(Ok(Value::String(text))) => Ok(Some(text)),
        Some(Ok(Value::Object(by_language))) => {
            let text = |(tag, text)| {
                if let Value::String(text) = text {
                    Some((tag, text))
                } else {
                    None
                }
            };
            Ok(pick_language(
                by_language.into_iter().filter_map(text).collect(),
            ))
        }
        Some(Ok(_)) => Err(format!("{name} is not a text")),
        Some(Err(why)) => Err(format!("{name} {why}")),
    }
}

impl LocalizedString {
    /// Returns the text in English, or else in the first language.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Plain(text) => text,
            Self::Localized(by_language) => pick_language(by_language).unwrap_or_default(),
        }
    }

    /// Returns the number of bytes that the text holds.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Localized(by_language) => by_language
                .iter()
                .map(|(tag, text)| size_of::<(String, String)>() + tag.len() + text.len())
                .sum(),
        }
    }
}

fn pick_language(mut by_language: Vec<(String, String)>) -> Option<String> {
    let is_preferred = |(tag, _): &(String, String)| {
        tag.split(['-', '_'])
            .next()
            .is_some_and(|language| language.eq_ignore_ascii_case(PREFERRED_LANGUAGE))
    };
    let index = by_language
        .iter()
        .position(is_preferred)
        .unwrap_or_default();
    (index < by_language.len()).then(|| by_language.swap_remove(index).1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(name: &str, value: &Value) -> ActMetadata {
        vec![
            ("other".to_owned(), Vec::new()),
            (name.to_owned(), cbor::from_json(value).unwrap()),
        ]
    }

    #[test]
    fn values_have_their_type_or_say_why_not() {
        assert_eq!(read_flag(&metadata("a", &json!(true)), "a"), Ok(Some(true)));
        assert_eq!(read_flag(&metadata("a", &json!(true)), "b"), Ok(None));
        assert_eq!(
            read_flag(&metadata("a", &json!(1)), "a").unwrap_err(),
            "a is neither true nor false"
        );
        let wrong = vec![("a".to_owned(), vec![0x61])];
        assert_eq!(
            read_flag(&wrong, "a").unwrap_err(),
            "a ends in the middle of an item"
        );
        assert_eq!(
            read_text(&wrong, "a").unwrap_err(),
            "a ends in the middle of an item"
        );
        let large = json!("x".repeat(MAX_VALUE_BYTES));
        assert_eq!(
            read_text(&metadata("a", &large), "a").unwrap_err(),
            "a is too large"
        );
        assert_eq!(read_number(&metadata("a", &json!(3)), "a"), Some(3.0));
        assert_eq!(read_number(&wrong, "a"), None);
    }

    #[test]
    fn texts_are_shown_in_english_or_in_the_first_language() {
        let localized = |texts: &[(&str, &str)]| {
            let texts = texts
                .iter()
                .map(|(tag, text)| ((*tag).to_owned(), (*text).to_owned()));
            LocalizedString::Localized(texts.collect()).into_text()
        };
        assert_eq!(localized(&[("de", "eins"), ("EN-gb", "one")]), "one");
        assert_eq!(localized(&[("de", "eins"), ("fr", "un")]), "eins");
        assert_eq!(localized(&[]), "");
        let in_cbor = metadata("a", &json!({"de": "eins", "en": "one"}));
        assert_eq!(read_text(&in_cbor, "a"), Ok(Some("one".to_owned())));
        assert_eq!(
            read_text(&metadata("a", &json!("plain")), "a"),
            Ok(Some("plain".to_owned()))
        );
        assert_eq!(read_text(&metadata("a", &json!({"de": 1})), "a"), Ok(None));
    }
}
