//! Logging to standard error. Standard output is reserved for the protocol.
//!
//! Many log lines contain text from guests, clients and files, in messages and in fields. Callers
//! do not need to sanitize it: here, each value becomes one line of bounded length without control
//! characters.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Debug, Display};
use std::io::{IsTerminal as _, Write as _, stderr};
use std::panic::{PanicHookInfo, set_hook};
use std::sync::OnceLock;
use std::thread;

use anstyle::Style;
use toolbay_model::text::bounded_line;
use toolbay_settings::toml_file::nearest;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::process::log_export::LogExportLayer;
use crate::process::stderr::{StderrWriter, print_message};

/// The log levels, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Directives that hide internal messages of the file watcher, unless the filter names it.
const QUIET_DIRECTIVES: [&str; 1] = ["notify=error"];

/// Directives that hide what a plugin reports during a call, for a command that prints that itself.
/// A filter that names the same target overrides them.
const PRINTED_DIRECTIVES: [&str; 2] = ["toolbay::guest=off", "toolbay::denied=off"];

/// Maximum length of a message or field in the log, in bytes.
const MAX_VALUE_BYTES: usize = 8_000;

/// Checks a log filter.
///
/// # Errors
///
/// The reason why the filter is invalid.
pub(crate) fn check(filter: &str) -> Result<(), String> {
    parse_filter(filter).map(|_| ())
}

fn parse_filter(filter: &str) -> Result<EnvFilter, String> {
    let wrong = |error| format!("{filter:?} is not a log filter: {error}");
    let mut directives = EnvFilter::try_new(expand_level(filter)?).map_err(wrong)?;
    if !filter.contains("notify") {
        for directive in QUIET_DIRECTIVES {
            directives = directives.add_directive(directive.parse().map_err(wrong)?);
        }
    }
    Ok(directives)
}

/// Expands a `filter` that is only a level. The level then applies to Toolbay's own crates;
/// libraries log at most at `warn`.
fn expand_level(filter: &str) -> Result<String, String> {
    let filter = filter.trim();
    if filter.is_empty() {
        return Err(format!(
            "the log filter is empty; the levels are {}",
            LEVELS.join(", ")
        ));
    }
    if LEVELS.contains(&filter) {
        let others = if matches!(filter, "off" | "error") {
            filter
        } else {
            "warn"
        };
        // A target covers all targets that start with it, so this one covers all crates of Toolbay.
        return Ok(format!("toolbay={filter},{others}"));
    }
    // A span in brackets can itself contain commas and equals signs.
    if !filter.contains('[') {
        for directive in filter.split(',').map(str::trim) {
            // `EnvFilter` would take a misspelled level for the name of a target and turn all logs
            // off.
            let level = directive
                .rsplit_once('=')
                .map_or(directive, |(_, level)| level);
            if !LEVELS.contains(&level) {
                return Err(match nearest(level, &LEVELS) {
                    Some(near) => format!("{level:?} is not a level; did you mean {near:?}?"),
                    None => format!(
                        "{level:?} is not a level; the levels are {}",
                        LEVELS.join(", ")
                    ),
                });
            }
        }
    }
    Ok(filter.to_owned())
}

/// Returns the filter without what a plugin reports during a call, for a command that prints that
/// itself. A filter that names one of these targets logs it all the same.
///
/// # Errors
///
/// The reason why the filter is invalid.
pub(crate) fn without_printed_targets(filter: &str) -> Result<String, String> {
    let mut expanded = expand_level(filter)?;
    for directive in PRINTED_DIRECTIVES {
        let target = directive.split('=').next().unwrap_or_default();
        if !expanded.contains(target) {
            expanded.push(',');
            expanded.push_str(directive);
        }
    }
    Ok(expanded)
}

/// Function that replaces the filter of the running log.
static FILTER_RELOADER: OnceLock<FilterReloader> = OnceLock::new();

type FilterReloader = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// Replaces the log filter.
///
/// # Errors
///
/// The reason why the filter is invalid.
pub(crate) fn set_filter(filter: &str) -> Result<(), String> {
    let directives = parse_filter(filter)?;
    FILTER_RELOADER
        .get()
        .map_or(Ok(()), |replace| replace(directives))
}

/// Starts logging with `filter`: a level, or directives such as `toolbay=debug,warn`. Log events
/// also go to `export_layer`, if present.
///
/// # Errors
///
/// The reason why the filter is invalid.
pub(crate) fn init(filter: &str, export_layer: Option<LogExportLayer>) -> Result<(), String> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse_filter(filter)?)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .with_writer(|| StderrWriter)
        .with_ansi(stderr().is_terminal())
        .with_target(false)
        // If enabled, `tracing_subscriber` prints its errors to standard error, and ends the
        // process if that fails.
        .log_internal_errors(false)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    let subscriber = builder.finish();
    // Fails only if a test has already set one.
    let started = match export_layer {
        Some(records) => subscriber.with(records).try_init(),
        None => subscriber.try_init(),
    };
    if started.is_ok() {
        let replace =
            move |directives| handle.reload(directives).map_err(|error| error.to_string());
        drop(FILTER_RELOADER.set(Box::new(replace)));
    }
    set_hook(Box::new(report_panic));
    Ok(())
}

/// Writes a field as `name=value`, and the message without its name.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = bounded_line(format_args!("{value:?}"), MAX_VALUE_BYTES);
    if field.name() == "message" {
        return writer.write_str(&value);
    }
    let [name, sign] = if writer.has_ansi_escapes() {
        [Style::new().italic(), Style::new().dimmed()]
    } else {
        [Style::new(); 2]
    };
    write!(
        writer,
        "{name}{}{name:#}{sign}={sign:#}{value}",
        field.name()
    )
}

/// Reports the panic of a thread, independent of the log filter: it is a bug of the server. The
/// standard library's hook would block on the reader of standard error.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let location = panic
        .location()
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    print_message(&format!(
        "internal error in the thread {name}{location}: {}",
        bounded_line(panic_message(panic), MAX_VALUE_BYTES)
    ));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        drop(StderrWriter.write_all(trace.to_string().as_bytes()));
    }
}

fn panic_message<'a>(panic: &'a PanicHookInfo<'_>) -> impl Display + 'a {
    panic.payload_as_str().unwrap_or("the panic has no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_level_applies_to_toolbay() {
        for (level, full) in [
            ("debug", "toolbay=debug,warn"),
            ("warn", "toolbay=warn,warn"),
            ("error", "toolbay=error,error"),
            ("off", "toolbay=off,off"),
        ] {
            assert_eq!(expand_level(level).unwrap(), full);
        }
        let full = [
            "toolbay=debug,warn",
            "info,wasmtime=trace",
            "toolbay::mcp=trace",
            "toolbay[span{a=1}]=info",
        ];
        for filter in full {
            assert_eq!(expand_level(filter).unwrap(), filter);
            check(filter).unwrap();
        }
    }

    #[test]
    fn printed_targets_are_logged_only_if_the_filter_names_them() {
        assert_eq!(
            without_printed_targets("info").unwrap(),
            "toolbay=info,warn,toolbay::guest=off,toolbay::denied=off"
        );
        assert_eq!(
            without_printed_targets("off,toolbay::guest=debug").unwrap(),
            "off,toolbay::guest=debug,toolbay::denied=off"
        );
        assert!(without_printed_targets("loud").is_err());
    }

    #[test]
    fn an_unknown_level_is_refused_with_the_nearest_one() {
        let filters = [
            "inof",
            "",
            "loud",
            "toolbay=debgu",
            "wran,toolbay=debug",
            "toolbay",
            "toolbay[=info",
        ];
        insta::assert_snapshot!(filters.map(|filter| check(filter).unwrap_err()).join("\n"), @r#"
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
