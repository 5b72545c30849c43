//! Logs: to standard error, never to standard output, which belongs to the protocol.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;

/// What the watcher says of its own housekeeping is for nobody who has not asked for it.
const QUIET: [&str; 2] = ["notify=error", "notify_debouncer_full=error"];

/// Whether `filter` can be read.
///
/// # Errors
///
/// What is wrong with it.
pub fn check(filter: &str) -> Result<(), String> {
    directives(filter).map(|_| ())
}

fn directives(filter: &str) -> Result<EnvFilter, String> {
    let wrong = |error| format!("log = {filter:?} is not a log filter: {error}");
    let mut directives = EnvFilter::try_new(filter).map_err(wrong)?;
    if !filter.contains("notify") {
        for quiet in QUIET {
            directives = directives.add_directive(quiet.parse().map_err(wrong)?);
        }
    }
    Ok(directives)
}

/// Starts logging what `filter` says: a level, or directives such as `toolbay=debug,warn`.
///
/// # Errors
///
/// The filter cannot be read.
pub fn init(filter: &str) -> Result<(), String> {
    // Fails only when a test has set one before.
    drop(
        tracing_subscriber::fmt()
            .with_env_filter(directives(filter)?)
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal())
            .with_target(false)
            .try_init(),
    );
    Ok(())
}
