//! What else the machine does, as far as it matters for figures.

use anyhow::{Context, Result};

/// How many threads wanted to run in the last minute, on average, as Linux tells it.
pub(super) fn average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("failed to read /proc/loadavg (this needs Linux)")?;
    text.split(' ').next().and_then(|load| load.parse().ok()).context("/proc/loadavg holds no number")
}
