//! Members that guests write in other ways than MCP wants, where nothing is lost.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a member that only helps, such as a hint or a size. A value of another type is like none.
pub(crate) fn or_none<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    source: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(source)?).ok())
}

/// Reads a member for which `null` means the same as if it were absent. Some languages write empty
/// lists so.
pub(crate) fn null_as_absent<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    source: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

/// Reads the items of a list that only decorates, such as icons. An item of another form is left
/// out.
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
