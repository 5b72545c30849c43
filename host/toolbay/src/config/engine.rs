//! `[engine]`: what components can use of WebAssembly.

use serde::Deserialize;

/// What components can use of WebAssembly (`[engine]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// Whether components with async functions are served (`async`). Default: true.
    #[serde(rename = "async")]
    pub concurrent: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { concurrent: true }
    }
}
