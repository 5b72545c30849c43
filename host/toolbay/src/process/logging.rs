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
use serde::Deserialize;
use toolbay_model::text::bounded_line;
use toolbay_settings::toml_file::nearest;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{JsonFields, Writer, debug_fn};
use tracing_subscriber::fmt::{FormatEvent, FormatFields, SubscriberBuilder};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry};

use crate::process::json_log::{JsonEventFormat, MAX_VALUE_BYTES};
use crate::process::log_export::LogExportLayer;
use crate::process::stderr::{StderrWriter, print_message};

/// The log levels, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Targets of Toolbay's log events: the names of its crates. Modules are targets as well, but move.
const CRATE_TARGETS: [&str; 25] = [
    "toolbay",
    "toolbay_audit",
    "toolbay_background",
    "toolbay_bundle",
    "toolbay_catalog",
    "toolbay_confine",
    "toolbay_console",
    "toolbay_guest_mcp",
    "toolbay_install",
    "toolbay_lock",
    "toolbay_mcp",
    "toolbay_model",
    "toolbay_otel",
    "toolbay_outgoing",
    "toolbay_policy",
    "toolbay_private",
    "toolbay_recording",
    "toolbay_registry",
    "toolbay_sandbox",
    "toolbay_schema",
    "toolbay_secrets",
    "toolbay_settings",
    "toolbay_socket",
    "toolbay_state",
    "toolbay_tls",
];

/// Directives that hide internal messages of the file watcher, unless the filter names it.
const QUIET_DIRECTIVES: [&str; 1] = ["notify=error"];

/// Directives that hide what a plugin reports during a call, for a command that prints that itself.
/// A filter that names the same target overrides them.
const PRINTED_DIRECTIVES: [&str; 2] = ["toolbay::guest=off", "toolbay::denied=off"];

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
            let (target, level) = directive
                .rsplit_once('=')
                .map_or((None, directive), |(target, level)| (Some(target), level));
            if let Some(target) = target {
                check_target(target)?;
            }
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

/// Refuses a target that looks like a crate of Toolbay and is none: nothing would be logged for it.
fn check_target(target: &str) -> Result<(), String> {
    let name = target.split("::").next().unwrap_or(target);
    if !name.starts_with("toolbay") || CRATE_TARGETS.contains(&name) {
        return Ok(());
    }
    Err(match nearest(name, &CRATE_TARGETS) {
        Some(near) => format!("{name:?} is not a log target; did you mean {near:?}?"),
        None => format!(
            "{name:?} is not a log target; the targets of Toolbay are {}",
            CRATE_TARGETS.join(", ")
        ),
    })
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

/// Format of log lines (`log_format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging with `filter`: a level, or directives such as `toolbay=debug,warn`. Log events
/// also go to `export_layer`, if present.
///
/// # Errors
///
/// The reason why the filter is invalid.
pub(crate) fn init(
    filter: &str,
    format: LogFormat,
    export_layer: Option<LogExportLayer>,
) -> Result<(), String> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse_filter(filter)?)
        .with_writer((|| StderrWriter) as fn() -> StderrWriter)
        .with_ansi(format == LogFormat::Text && stderr().is_terminal())
        .with_target(false)
        // If enabled, `tracing_subscriber` prints its errors to standard error, and ends the
        // process if that fails.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => set_subscriber(
            builder.fmt_fields(debug_fn(write_field).delimited(" ")),
            export_layer,
        ),
        LogFormat::Json => set_subscriber(
            builder
                .fmt_fields(JsonFields::new())
                .event_format(JsonEventFormat),
            export_layer,
        ),
    }
    set_hook(Box::new(report_panic));
    Ok(())
}

/// Sets the subscriber of the process, and the function that replaces its filter. Does nothing if
/// a test has already set one.
fn set_subscriber<N, E>(
    builder: SubscriberBuilder<N, E, EnvFilter, fn() -> StderrWriter>,
    export_layer: Option<LogExportLayer>,
) where
    N: for<'writer> FormatFields<'writer> + Send + Sync + 'static,
    E: FormatEvent<Registry, N> + Send + Sync + 'static,
{
    let builder = builder.with_filter_reloading();
    let handle = builder.reload_handle();
    let subscriber = builder.finish();
    let started = match export_layer {
        Some(records) => subscriber.with(records).try_init(),
        None => subscriber.try_init(),
    };
    if started.is_ok() {
        let replace =
            move |directives| handle.reload(directives).map_err(|error| error.to_string());
        drop(FILTER_RELOADER.set(Box::new(replace)));
    }
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
            "toolbay_mcp=trace",
            "toolbay_sandbox::denied=info",
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
            "toolbay_mpc=trace",
            "toolbay-catalog=debug,warn",
        ];
        insta::assert_snapshot!(filters.map(|filter| check(filter).unwrap_err()).join("\n"), @r#"
        "inof" is not a level; did you mean "info"?
        the log filter is empty; the levels are off, error, warn, info, debug, trace
        "loud" is not a level; the levels are off, error, warn, info, debug, trace
        "debgu" is not a level; did you mean "debug"?
        "wran" is not a level; did you mean "warn"?
        "toolbay" is not a level; the levels are off, error, warn, info, debug, trace
        "toolbay[=info" is not a log filter: invalid filter directive
        "toolbay_mpc" is not a log target; did you mean "toolbay_mcp"?
        "toolbay-catalog" is not a log target; did you mean "toolbay_catalog"?
        "#);
    }

    #[test]
    fn each_crate_of_the_server_is_a_target() {
        let crates = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let mut targets: Vec<String> = crates
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "testkit")
            .map(|name| match name.as_str() {
                "toolbay" => name,
                _ => format!("toolbay_{}", name.replace('-', "_")),
            })
            .collect();
        targets.sort();
        assert_eq!(targets, CRATE_TARGETS);
    }
}
