//! Checks the version of an interpreter.

use anyhow::{Context, Result, ensure};

/// Fails if the version in the output `said` is older than `least`. The error contains the advice
/// in `otherwise`.
pub(crate) fn require_version(said: &str, least: &str, otherwise: &str) -> Result<()> {
    let found = toolbay_settings::version::find_version(said)
        .with_context(|| format!("{said:?} is not a version; {otherwise}"))?;
    ensure!(
        toolbay_settings::version::is_at_least(&found, least)?,
        "version {found} is too old; {otherwise}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_too_old_is_refused() {
        assert!(require_version("3.10.2\n", "3.10", "").is_ok());
        assert!(require_version("v20.0.0", "20", "").is_ok());
        let error = require_version("3.9.18", "3.10", "install Python 3.10 or newer").unwrap_err();
        assert_eq!(
            error.to_string(),
            "version 3.9.18 is too old; install Python 3.10 or newer"
        );
        assert!(require_version("many", "3.10", "").is_err());
    }
}
