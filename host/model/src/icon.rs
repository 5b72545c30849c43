//! Icons that a client displays next to a tool, a prompt, a resource or the server.

use serde::{Deserialize, Serialize};

/// Overhead of an icon, or of a definition that can have icons, in addition to its texts, in bytes.
pub(crate) const DEFINITION_OVERHEAD_BYTES: usize = 64;

/// An icon (MCP `Icon`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// A URI that begins with `https://` or `data:image/`.
    pub src: String,
    /// Its MIME type, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background for which the icon is designed; `None` means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// Returns the size of the icon in bytes. Each part has an overhead, even if it is empty.
    pub fn size(&self) -> usize {
        let sizes: usize = self
            .sizes
            .iter()
            .map(|size| DEFINITION_OVERHEAD_BYTES + size.len())
            .sum();
        DEFINITION_OVERHEAD_BYTES
            + self.src.len()
            + self.mime_type.as_ref().map_or(0, String::len)
            + sizes
    }
}

/// The background for which an icon is designed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}
