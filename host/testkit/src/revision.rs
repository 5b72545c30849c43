//! The protocol revisions that tests use.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The newest revision with `initialize`. [`crate::StdioClient::session_revisions`] returns those
/// of a given server.
pub const NEWEST_SESSION_REVISION: &str = "2025-11-25";

/// The first revision without sessions, in which each request contains its revision.
pub const FIRST_STATELESS_REVISION: &str = "2026-07-28";

/// Returns the revisions with sessions from the result of `server/discover`, oldest first. Fails if
/// there are none.
pub fn session_revisions(discovered: &Value) -> Result<Vec<String>> {
    let supported = discovered
        .get("supportedVersions")
        .and_then(Value::as_array);
    let supported = supported.with_context(|| format!("no supportedVersions in {discovered}"))?;
    let sessions = supported
        .iter()
        .filter_map(Value::as_str)
        .filter(|revision| *revision < FIRST_STATELESS_REVISION);
    let mut sessions: Vec<String> = sessions.map(ToOwned::to_owned).collect();
    sessions.sort_unstable();
    ensure!(
        !sessions.is_empty(),
        "no revision with sessions in {discovered}"
    );
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn revisions_with_sessions_are_those_before_the_stateless_ones() {
        let discovered = json!({"supportedVersions": ["2027-01-01", FIRST_STATELESS_REVISION, "2024-11-05", NEWEST_SESSION_REVISION, "2025-06-18"]});
        assert_eq!(
            session_revisions(&discovered).unwrap(),
            ["2024-11-05", "2025-06-18", NEWEST_SESSION_REVISION]
        );
        assert!(
            session_revisions(&json!({"supportedVersions": [FIRST_STATELESS_REVISION]})).is_err()
        );
        assert!(session_revisions(&json!({})).is_err());
    }
}
