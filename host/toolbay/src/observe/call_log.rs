//! The server's log as a receiver of the events of calls.

use std::fmt::{self, Display, Formatter};

use toolbay_model::text::clean_line;
use toolbay_model::{CallError, CallReply, LogLevel};
use toolbay_schema::ValueConversion;

use crate::approval::call_target::CallTarget;
use crate::approval::ruling::ApprovalDecision;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::guest_run::GuestRun;
use crate::observe::outcome_counters::CallCounters;
use crate::observe::stage_times::StageTimes;

/// Maximum length of a logged failure, in bytes: parts of it come from guests.
const MAX_LOGGED_BYTES: usize = 1_000;

/// Maximum number of conversions that a log line names.
const MAX_LOGGED_CONVERSIONS: usize = 10;

/// Writes the events of calls to the log. The counters number the crashes.
pub(crate) struct CallLog<'a>(pub(crate) &'a CallCounters);

impl CallSink for CallLog<'_> {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::CheckStopped { target, error } => tracing::warn!(
                plugin = target.plugin().id,
                target = target.public_name(),
                "call stopped: {error}"
            ),
            CallEvent::ArgumentsConverted {
                target,
                caller,
                converted,
            } => tracing::info!(
                plugin = target.plugin().id,
                tool = target.public_name(),
                caller,
                "arguments converted: {}",
                describe_conversions(converted)
            ),
            CallEvent::ApprovalDecided {
                offer,
                caller,
                decision,
                ..
            } => log_approval(&offer.plugin.id, &offer.tool.name, caller, decision),
            CallEvent::ApprovalWithdrawn {
                subject,
                caller,
                decision,
            } => log_approval(&subject.plugin, &subject.tool, caller, decision),
            CallEvent::GuestLogged {
                target,
                level,
                message,
            } => log_message(target, *level, message),
            CallEvent::Denied {
                target,
                what,
                remedy,
                ..
            } => log_denial(target, what, *remedy),
            CallEvent::GuestFinished {
                target,
                result,
                run,
                times,
            } => self.log_end(target, result, run, times),
            _ => {}
        }
    }
}

impl CallLog<'_> {
    /// Logs the end of a call that entered a guest.
    fn log_end(
        &self,
        target: &CallTarget,
        result: &Result<Option<CallReply>, CallError>,
        run: &GuestRun,
        times: &StageTimes,
    ) {
        let plugin = &target.plugin().id;
        let tool = target.public_name();
        let usage = run.usage;
        for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            if !text.is_empty() {
                tracing::debug!(target: "toolbay::guest", plugin, tool, stream, text);
            }
        }
        if run.log_dropped > 0 {
            let limit = target.plugin_context().limits.log.display().iec();
            tracing::warn!(
                plugin,
                tool,
                dropped = run.log_dropped,
                "dropped log messages beyond {limit} (limits.log)"
            );
        }
        let wall_ms = (usage.wall.as_secs_f64() * 10_000.0).round() / 10.0;
        let Err(error) = result else {
            let fuel = usage.fuel;
            let memory = usage.memory;
            tracing::debug!(
                plugin,
                tool,
                wall_ms,
                fuel,
                memory,
                stages = times.log_summary(),
                "call succeeded"
            );
            return;
        };
        let said = clean_line(&error.to_string(), MAX_LOGGED_BYTES);
        match error {
            CallError::Limit { .. } => {
                tracing::warn!(plugin, tool, wall_ms, "call stopped: {said}");
            }
            CallError::Trap { .. } => {
                // The counters include this crash only when the response is sent.
                let traps = self.0.trap_count() + 1;
                tracing::warn!(plugin, tool, wall_ms, traps, "call crashed: {said}");
            }
            CallError::Cancelled => tracing::info!(plugin, tool, wall_ms, "call cancelled"),
            _ => tracing::info!(plugin, tool, wall_ms, "call failed: {said}"),
        }
    }
}

/// Logs a decision about the approval of a call.
fn log_approval(plugin: &str, tool: &str, caller: &str, decision: &ApprovalDecision) {
    let ApprovalDecision {
        outcome: word,
        operator: by,
        ..
    } = decision;
    tracing::info!(plugin, tool, caller, by, "approval: {word}");
}

/// Logs a denied operation, with advice on how to allow it.
fn log_denial(target: &CallTarget, what: &str, remedy: Option<&str>) {
    let plugin = &target.plugin().id;
    let tool = target.public_name();
    let remedy = DenialRemedy { plugin, remedy };
    tracing::info!(target: "toolbay::denied", plugin, tool, "denied: {what}{remedy}");
}

/// Logs a message of a guest.
fn log_message(target: &CallTarget, level: LogLevel, message: &str) {
    let plugin = &target.plugin().id;
    let tool = target.public_name();
    // A separate target, because some commands print these messages themselves.
    match level {
        LogLevel::Debug => tracing::debug!(target: "toolbay::guest", plugin, tool, "{message}"),
        LogLevel::Info | LogLevel::Notice => {
            tracing::info!(target: "toolbay::guest", plugin, tool, "{message}");
        }
        LogLevel::Warning => tracing::warn!(target: "toolbay::guest", plugin, tool, "{message}"),
        LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
            tracing::error!(target: "toolbay::guest", plugin, tool, "{message}");
        }
    }
}

/// The advice on how to allow a denied operation.
struct DenialRemedy<'a> {
    plugin: &'a str,
    remedy: Option<&'a str>,
}

impl Display for DenialRemedy<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(lines) = self.remedy else {
            return Ok(());
        };
        let plugin = self.plugin;
        let line = lines.replace('\n', " and ");
        write!(
            f,
            " To allow it, add to [permissions] in {plugin}.toml: {line}"
        )
    }
}

/// Formats conversions of arguments.
fn describe_conversions(converted: &[ValueConversion]) -> String {
    let first: Vec<String> = converted
        .iter()
        .take(MAX_LOGGED_CONVERSIONS)
        .map(ToString::to_string)
        .collect();
    let more = converted.len().saturating_sub(MAX_LOGGED_CONVERSIONS);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", first.join(", "))
}
