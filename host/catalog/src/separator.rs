//! What stands between the prefix of a grant and the name of a tool or prompt.

use serde::Deserialize;

/// What stands between a prefix and a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum NameSeparator {
    /// Part of names that every client and every API for models accepts.
    #[default]
    #[serde(rename = "_")]
    Underscore,
    /// What Toolbay up to 0.2 wrote. MCP allows it, and several clients do not.
    #[serde(rename = ".")]
    Dot,
}

impl NameSeparator {
    /// A name with a prefix.
    pub(crate) fn join(self, prefix: &str, name: &str) -> String {
        let between = match self {
            Self::Underscore => '_',
            Self::Dot => '.',
        };
        format!("{prefix}{between}{name}")
    }
}
