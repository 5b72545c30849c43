//! The separator between the prefix of a grant and the name of a tool or prompt.

use serde::Deserialize;

/// The separator between a prefix and a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum NameSeparator {
    /// An underscore. Every client and every model API accepts it in names.
    #[default]
    #[serde(rename = "_")]
    Underscore,
    /// A dot, the separator of Toolbay up to 0.2. MCP allows it, but several clients do not.
    #[serde(rename = ".")]
    Dot,
}

impl NameSeparator {
    /// Joins a prefix and a name.
    pub(crate) fn join(self, prefix: &str, name: &str) -> String {
        let separator = match self {
            Self::Underscore => '_',
            Self::Dot => '.',
        };
        format!("{prefix}{separator}{name}")
    }
}
