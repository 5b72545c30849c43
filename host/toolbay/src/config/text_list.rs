//! Lists of strings. A variable contains the list as one string.

use serde::{Deserialize, Deserializer};

/// Parses a list of strings, or one string with commas, as in a variable.
pub(super) fn parse_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a list of strings, or one string with commas"
    )]
    enum ListInput {
        Items(Vec<String>),
        Text(String),
    }
    Ok(match ListInput::deserialize(deserializer)? {
        ListInput::Items(items) => items,
        ListInput::Text(text) => text
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect(),
    })
}
