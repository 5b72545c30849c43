//! `[metrics]`: what operators read at `/metrics`.

use serde::Deserialize;

/// What operators read at `/metrics`, over HTTP (`[metrics]`). Who they are is said by [`Token::admin`](super::Token::admin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Whether anything is counted for metrics, and served, where [`Http::listen`](super::Http::listen) is set. Default:
    /// true.
    pub enabled: bool,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
