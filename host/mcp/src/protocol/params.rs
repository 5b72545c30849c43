//! Parses the parameters of a method.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::protocol::jsonrpc::{Error, INVALID_PARAMS, truncate_error};
use crate::protocol::lenient_object::object;

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
pub(crate) fn read_with_meta<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(Error::new(INVALID_PARAMS, "params must be an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        // The error may quote client input.
        Error::new(INVALID_PARAMS, format!("Invalid params: {}", truncate_error(&error.to_string())))
    })
}
