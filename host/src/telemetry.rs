//! Logs: to standard error, never to standard output, which belongs to the protocol.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;

/// Starts logging what `filter` says: a level, or directives such as `toolbay=debug,warn`.
///
/// # Errors
///
/// The filter cannot be read.
pub fn init(filter: &str) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(filter).map_err(|error| format!("log = {filter:?} is not a log filter: {error}"))?;
    // Fails only when a test has set one before.
    drop(
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal())
            .with_target(false)
            .try_init(),
    );
    Ok(())
}
