//! `ping`: returns an empty result.

use serde::de::IgnoredAny;
use serde_json::Map;
use serde_json::value::RawValue;

use super::MethodResult;
use crate::protocol::params::read;

/// Returns the result.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, as every method does.
pub(crate) fn answer(params: Option<&RawValue>) -> MethodResult {
    read::<IgnoredAny>(params)?;
    Ok(Map::new())
}
