//! `[metrics]`: metrics for operators at `/metrics`.

use serde::Deserialize;

/// Metrics for operators at `/metrics`, over HTTP (`[metrics]`).
/// [`Token::admin`](super::Token::admin) identifies operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// If set, metrics are collected, and served if [`Http::listen`](super::Http::listen) is set.
    /// Default: true.
    pub enabled: bool,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
