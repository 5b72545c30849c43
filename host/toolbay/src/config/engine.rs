//! `[engine]`: WebAssembly features that components can use.

use serde::Deserialize;

/// WebAssembly features that components can use (`[engine]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// If set, components with async functions are served (`async`). Default: true.
    #[serde(rename = "async")]
    pub concurrent: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { concurrent: true }
    }
}
