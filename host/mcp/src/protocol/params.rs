//! Parses the parameters of a method.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::protocol::jsonrpc::{Error, INVALID_PARAMS, truncate_error};
use crate::protocol::lenient_object::{OBJECT_DESCRIPTION, is_empty_list, json_type, object};

/// The parameters that every method has.
#[derive(Deserialize)]
struct CommonParams {
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    _meta: IgnoredObject,
}

/// An object with any members.
#[derive(Default)]
struct IgnoredObject;

impl<'de> Deserialize<'de> for IgnoredObject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// Parses the parameters of a method that does not use `_meta`. Absent parameters count as an empty
/// object.
///
/// # Errors
///
/// Returns [`INVALID_PARAMS`] if the parameters are not an object or invalid for the method, or if
/// `_meta` is not an object.
pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Error> {
    if params.is_some_and(|params| params.get().contains("_meta")) {
        read_with_meta::<CommonParams>(params)?;
    }
    read_with_meta(params)
}

/// Parses the parameters of a method whose type has `_meta`. Absent parameters count as an empty
/// object.
///
/// # Errors
///
/// Returns [`INVALID_PARAMS`] if the parameters are not an object or invalid for the method.
pub(crate) fn read_with_meta<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(Error::new(INVALID_PARAMS, "params must be an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        let parser_error = error.to_string();
        // The error may quote client input.
        let reason = describe_wrong_object(text, &parser_error)
            .unwrap_or_else(|| truncate_error(&parser_error).to_owned());
        Error::new(INVALID_PARAMS, format!("Invalid params: {reason}"))
    })
}

/// The members that are objects in every method that has them.
#[derive(Deserialize)]
struct ObjectMembers<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Returns the error for the member that should be an object, if `parser_error` is about one.
fn describe_wrong_object(params: &str, parser_error: &str) -> Option<String> {
    if !parser_error.contains(&format!("expected {OBJECT_DESCRIPTION}")) {
        return None;
    }
    let ObjectMembers { meta, arguments } = serde_json::from_str(params).ok()?;
    let wrong_member = [("_meta", meta), ("arguments", arguments)]
        .into_iter()
        .find_map(|(name, value)| {
            let value = value?.get();
            // An empty list counts as an object without members.
            let is_object = value.starts_with('{') || is_empty_list(value);
            (!is_object).then_some((name, value))
        });
    wrong_member.map(|(name, value)| {
        format!(
            "{name} must be {OBJECT_DESCRIPTION}, not {}",
            json_type(value)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_not_an_object_is_named() {
        let said = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            read::<IgnoredAny>(Some(&params))
                .map_err(|error| (error.code, error.message))
                .err()
        };
        for (meta, kind) in [
            ("[1]", "a list"),
            ("7", "a number"),
            ("\"{}\"", "a string"),
            ("true", "a boolean"),
        ] {
            let expected = format!("Invalid params: _meta must be an object, not {kind}");
            assert_eq!(
                said(&format!(r#"{{"_meta": {meta}}}"#)),
                Some((INVALID_PARAMS, expected))
            );
        }
        for meta in ["{}", "null", "[]", "[ ]", r#"{"a": 1}"#] {
            assert_eq!(
                said(&format!(r#"{{"arguments": 7, "_meta": {meta}}}"#)),
                None,
                "{meta}"
            );
        }
        assert_eq!(
            said("[1]"),
            Some((INVALID_PARAMS, "params must be an object".to_owned()))
        );
    }
}
