//! The revisions of the protocol that tests speak.

use anyhow::{Context, Result};
use serde_json::Value;

/// The newest revision with `initialize`. [`crate::Client::newest_session`] is the newest one of a given server.
pub const SESSION: &str = "2025-11-25";

/// The first revision without sessions: each request states its revision.
pub const STATELESS: &str = "2026-07-28";

/// The newest revision with sessions that a server lists in the result of `server/discover`.
pub fn newest_session(discovered: &Value) -> Result<&str> {
    let supported = discovered.get("supportedVersions").and_then(Value::as_array);
    let supported = supported.with_context(|| format!("no supportedVersions in {discovered}"))?;
    let sessions = supported.iter().filter_map(Value::as_str).filter(|revision| *revision < STATELESS);
    sessions.max().with_context(|| format!("no revision with sessions in {discovered}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_session_revision_is_the_last_before_the_stateless_ones() {
        let discovered = json!({"supportedVersions": ["2027-01-01", STATELESS, "2024-11-05", SESSION, "2025-06-18"]});
        assert_eq!(newest_session(&discovered).unwrap(), SESSION);
        assert!(newest_session(&json!({"supportedVersions": [STATELESS]})).is_err());
        assert!(newest_session(&json!({})).is_err());
    }
}
