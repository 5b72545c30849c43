//! Logs: to standard error, never to standard output, which belongs to the protocol.

use std::io::{IsTerminal as _, stderr};

use toolbay_settings::toml_file::nearest;
use tracing_subscriber::EnvFilter;

/// The log levels, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The watcher's internal messages are hidden unless the filter names it.
const QUIET: [&str; 1] = ["notify=error"];

/// Checks a log filter.
///
/// # Errors
///
/// Says what is wrong with it.
pub(crate) fn check(filter: &str) -> Result<(), String> {
    directives(filter).map(|_| ())
}

fn directives(filter: &str) -> Result<EnvFilter, String> {
    let wrong = |error| format!("{filter:?} is not a log filter: {error}");
    let mut directives = EnvFilter::try_new(in_full(filter)?).map_err(wrong)?;
    if !filter.contains("notify") {
        for quiet in QUIET {
            directives = directives.add_directive(quiet.parse().map_err(wrong)?);
        }
    }
    Ok(directives)
}

/// `filter` with a level alone expanded: it applies to Toolbay's own crates; libraries log at `warn` at most.
fn in_full(filter: &str) -> Result<String, String> {
    let filter = filter.trim();
    if filter.is_empty() {
        return Err(format!("the log filter is empty; the levels are {}", LEVELS.join(", ")));
    }
    if LEVELS.contains(&filter) {
        let others = if matches!(filter, "off" | "error") { filter } else { "warn" };
        // A target covers all targets that begin with it, so this one covers all crates of Toolbay.
        return Ok(format!("toolbay={filter},{others}"));
    }
    // A span in brackets can itself contain commas and equals signs.
    if !filter.contains('[') {
        for directive in filter.split(',').map(str::trim) {
            // `EnvFilter` would take a misspelled level for the name of a target and turn all logs off.
            let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level);
            if !LEVELS.contains(&level) {
                return Err(match nearest(level, &LEVELS) {
                    Some(near) => format!("{level:?} is not a level; did you mean {near:?}?"),
                    None => format!("{level:?} is not a level; the levels are {}", LEVELS.join(", ")),
                });
            }
        }
    }
    Ok(filter.to_owned())
}

/// Starts logging with `filter`: a level, or directives such as `toolbay=debug,warn`.
///
/// # Errors
///
/// Says what is wrong with the filter.
pub(crate) fn init(filter: &str) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_about_toolbay() {
        for (level, full) in [
            ("debug", "toolbay=debug,warn"),
            ("warn", "toolbay=warn,warn"),
            ("error", "toolbay=error,error"),
            ("off", "toolbay=off,off"),
        ] {
            assert_eq!(in_full(level).unwrap(), full);
        }
        let full = ["toolbay=debug,warn", "info,wasmtime=trace", "toolbay::mcp=trace", "toolbay[span{a=1}]=info"];
        for filter in full {
            assert_eq!(in_full(filter).unwrap(), filter);
            check(filter).unwrap();
        }
    }

    #[test]
    fn what_is_no_level_is_refused_with_the_nearest() {
        let said = ["inof", "", "loud", "toolbay=debgu", "wran,toolbay=debug", "toolbay", "toolbay[=info"];
        insta::assert_snapshot!(said.map(|filter| check(filter).unwrap_err()).join("\n"), @r#"
        "inof" is not a level; did you mean "info"?
        the log filter is empty; the levels are off, error, warn, info, debug, trace
        "loud" is not a level; the levels are off, error, warn, info, debug, trace
        "debgu" is not a level; did you mean "debug"?
        "wran" is not a level; did you mean "warn"?
        "toolbay" is not a level; the levels are off, error, warn, info, debug, trace
        "toolbay[=info" is not a log filter: invalid filter directive
        "#);
    }
}
