//! The state that a plugin may store between calls.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize, Serializer};
use toolbay_model::setting::positive;

/// The state that a plugin may store between calls (`[permissions.state]`). Without the table, it
/// cannot store any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateGrant {
    /// Maximum size of all keys and values, in bytes, above 0. Default: 10 MiB.
    #[serde(deserialize_with = "positive", serialize_with = "bytes")]
    pub size: ByteSize,
    /// Maximum number of keys, at least 1. Default: 10,000.
    #[serde(deserialize_with = "positive")]
    pub keys: u64,
    /// The scope of the state. The quota applies to the state of each scope separately. Default:
    /// the plugin.
    pub scope: StateScope,
}

/// The scope of a plugin's state (`permissions.state.scope`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StateScope {
    /// One state for the plugin, which its callers share.
    #[default]
    Plugin,
    /// A separate state for each authenticated caller of the plugin.
    Caller,
}

impl Default for StateGrant {
    fn default() -> Self {
        Self {
            size: ByteSize::mib(10),
            keys: 10_000,
            scope: StateScope::Plugin,
        }
    }
}

impl StateGrant {
    /// The line under `[permissions]` with which an operator allows a plugin to store state.
    pub const REMEDY: &str = "state = { size = \"10MiB\", keys = 10000 }";
}

/// Serializes a size as a number of bytes, for programs.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
fn bytes<S: Serializer>(size: &ByteSize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(size.as_u64())
}

#[cfg(test)]
mod tests {
    use toolbay_settings::toml_file;

    use super::*;
    use crate::permissions::Permissions;

    fn state(text: &str) -> Result<Option<StateGrant>, String> {
        toml_file::parse::<Permissions>("a.toml", text).map(|permissions| permissions.state)
    }

    #[test]
    fn every_key_is_read_and_has_a_default() {
        assert_eq!(state(""), Ok(None));
        assert_eq!(state("[state]"), Ok(Some(StateGrant::default())));
        assert_eq!(
            state("[state]\nsize = \"1KiB\"\nkeys = 3\nscope = \"caller\""),
            Ok(Some(StateGrant {
                size: ByteSize::kib(1),
                keys: 3,
                scope: StateScope::Caller
            }))
        );
        assert_eq!(
            state(StateGrant::REMEDY),
            Ok(Some(StateGrant::default())),
            "what a denial suggests"
        );
    }

    #[test]
    fn a_mistake_names_its_place_and_the_nearest_key() {
        let mistakes = [
            "stat = {}",
            "[state]\nsise = \"1KiB\"",
            "[state]\nkey = 1",
            "[state]\nscop = \"caller\"",
            "[state]\nscope = \"callers\"",
            "[state]\nsize = 0",
            "[state]\nsize = \"many\"",
            "[state]\nkeys = 0",
            "[state]\nkeys = -1",
            "state = true",
        ];
        let messages: Vec<String> = mistakes
            .iter()
            .map(|text| state(text).unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        a.toml:1:1: unknown key `stat`; did you mean `state`?
        a.toml:2:1: unknown key `sise`; did you mean `size`?
        a.toml:2:1: unknown key `key`; did you mean `keys`?
        a.toml:2:1: unknown key `scop`; did you mean `scope`?
        a.toml:2:9: state.scope: expected "plugin" or "caller", not "callers"
        a.toml:2:8: state.size: expected a size above 0, such as "64MiB", not 0
        a.toml:2:8: state.size: expected a size above 0, such as "64MiB", not "many"
        a.toml:2:8: state.keys: expected an integer of at least 1, not 0
        a.toml:2:8: state.keys: expected an integer of at least 1, not -1
        a.toml:1:9: state: expected a table, not true
        "#);
    }
}
