//! Deserializers that tolerate deviations from MCP in members that are not essential.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an optional member, such as a hint or a size. Ignores a value of another type.
pub(crate) fn or_none<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    source: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(source)?).ok())
}

/// Reads a member for which `null` means the same as if it were absent. The JSON encoders of some
/// languages write empty lists as `null`.
pub(crate) fn null_as_absent<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    source: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

/// Reads the items of an optional list, such as icons. Omits malformed items.
pub(crate) fn readable_items<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    source: D,
) -> Result<Vec<T>, D::Error> {
    let Value::Array(items) = Value::deserialize(source)? else {
        return Ok(Vec::new());
    };
    Ok(items
        .into_iter()
        .filter_map(|item| serde_json::from_value(item).ok())
        .collect())
}
