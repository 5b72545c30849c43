//! Parses the parameters of a method.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{Error, INVALID_PARAMS, cut};

/// Parses a method's parameters; absent ones count as an empty object.
///
/// # Errors
///
/// [`INVALID_PARAMS`] if they are not an object or invalid for the method.
pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(Error::new(INVALID_PARAMS, "params must be an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        // It may quote what the client sent.
        Error::new(INVALID_PARAMS, format!("Invalid params: {}", cut(&error.to_string())))
    })
}
