//! Report of a call to the console, however the call ends.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use toolbay_audit::ArgumentsRecord;
use toolbay_console::{
    ApprovalNote, CallNote, CallProgress, CallTrail, DenialNote, RunningCallEntry, ServerActivity,
    TextExcerpt,
};
use toolbay_model::text::bounded_line;
use toolbay_model::{
    CallError, CallFailure, CallRejection, CallReply, CallResult, CallUsage, ErrorKind, LogLevel,
    ToolOutput,
};

use crate::approval::ruling::{ApprovalDecision, REMEMBERED_OUTCOME};
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_outcome::OutcomeLabel;

/// Maximum length of a name, in bytes. Clients choose names.
const MAX_NAME_BYTES: usize = 256;

/// Maximum length of a reason or a value, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 10;

/// Pending report of a call to the console. If dropped before the call ends, it reports the call as
/// cancelled.
#[derive(Debug)]
pub(crate) struct ConsoleReport {
    activity: Arc<ServerActivity>,
    /// The call's entry among the running calls.
    entry: RunningCallEntry,
    began: Instant,
    caller: String,
    tool: String,
    plugin: Option<String>,
    arguments: Option<TextExcerpt>,
    trace_id: Option<String>,
    /// The decision about the call's approval, in words.
    approval: Option<String>,
    /// The log messages and denials of the guest.
    trail: CallTrail,
    /// True if arguments and results are reported, too.
    includes_contents: bool,
    ended: bool,
}

impl ConsoleReport {
    /// Starts the report of a call of `tool`, with or without its `includes_contents`.
    pub(crate) fn start(
        watch: &Arc<ServerActivity>,
        caller: &str,
        tool: &str,
        contents: bool,
    ) -> Self {
        let short = |name: &str| {
            name.get(..name.floor_char_boundary(MAX_NAME_BYTES))
                .unwrap_or_default()
                .to_owned()
        };
        // Before anything copies them, because clients choose names.
        let (caller, tool) = (short(caller), short(tool));
        Self {
            activity: Arc::clone(watch),
            entry: watch.start_call(&caller, &tool),
            began: Instant::now(),
            caller,
            tool,
            plugin: None,
            arguments: None,
            trace_id: None,
            approval: None,
            trail: CallTrail::default(),
            includes_contents: contents,
            ended: false,
        }
    }

    /// Returns whether arguments and results are reported.
    pub(crate) fn includes_contents(&self) -> bool {
        self.includes_contents
    }

    /// Returns the signal that an operator stops the call.
    pub(crate) fn stop_signal(&self) -> Arc<Notify> {
        self.entry.stop_signal()
    }

    /// Returns the recorder of the guest's log messages and denials.
    pub(crate) fn trail_recorder(&self) -> TrailRecorder {
        TrailRecorder(self.trail.clone())
    }

    /// Sets the decision about the call's approval.
    fn set_approval(&mut self, decision: &ApprovalDecision) {
        self.approval = Some(match &decision.operator {
            Some(operator) => format!("{} by {operator} in the console", decision.outcome),
            None => decision.outcome.to_owned(),
        });
    }

    /// Returns a handle with which the progress of the call is reported.
    pub(crate) fn progress(&self) -> CallProgress {
        self.entry.progress()
    }

    /// Sets the plugin that handles the call.
    fn set_plugin(&mut self, plugin: &str) {
        self.entry.set_plugin(plugin);
        self.plugin = Some(plugin.to_owned());
    }

    /// Sets the arguments, if contents are reported.
    fn set_arguments(&mut self, arguments: &ArgumentsRecord) {
        if let Some(text) = arguments.text.as_ref().filter(|_| self.includes_contents) {
            let excerpt = TextExcerpt::new(text);
            self.arguments = Some(TextExcerpt {
                is_truncated: excerpt.is_truncated || arguments.is_truncated,
                ..excerpt
            });
        }
    }

    /// Reports the end of the call with this answer.
    fn finish(&mut self, answer: &CallResult) {
        let result = match &answer.result {
            Ok(reply) if self.includes_contents => Some(reply_excerpt(reply)),
            _ => None,
        };
        let why = answer
            .result
            .as_ref()
            .err()
            .map(|failure| self.failure_reason(failure));
        self.send(
            OutcomeLabel::from_answer(answer).as_str(),
            why,
            answer.usage,
            result,
        );
    }

    /// Reports that the call was rejected at the queue.
    fn reject(&mut self, rejection: CallRejection) {
        let why = rejection.reason.to_string();
        self.send(rejection.reason.kind().as_str(), Some(why), None, None);
    }

    /// Reports that the call ended without an answer.
    fn send_unfinished(&mut self) {
        let kind = if std::thread::panicking() {
            ErrorKind::Internal
        } else {
            ErrorKind::Cancelled
        };
        self.send(kind.as_str(), None, None, None);
    }

    fn send(
        &mut self,
        outcome: &'static str,
        why: Option<String>,
        usage: Option<CallUsage>,
        result: Option<TextExcerpt>,
    ) {
        self.ended = true;
        self.activity.record_call(CallNote {
            id: self.entry.id(),
            at: SystemTime::now(),
            caller: std::mem::take(&mut self.caller),
            plugin: self.plugin.take(),
            tool: std::mem::take(&mut self.tool),
            outcome,
            failure_reason: why,
            duration: self.began.elapsed(),
            usage,
            arguments: self.arguments.take(),
            result,
            trace_id: self.trace_id.take(),
            approval: self.approval.take(),
            trail: self.trail.clone(),
        });
    }

    /// Returns the reason of a failure, in the words of the log. Values of arguments are included
    /// only if contents are reported.
    fn failure_reason(&self, failure: &CallFailure) -> String {
        match failure {
            CallFailure::Unknown(unknown) => {
                let kind = unknown.kind;
                format!("There is no such {kind}, or the caller has no right to it.")
            }
            CallFailure::MissingCapabilities(missing) => {
                let names: Vec<&str> = missing.keys().map(String::as_str).collect();
                format!("The client lacks capabilities: {}.", names.join(", "))
            }
            CallFailure::InvalidArguments { violations, .. } if self.includes_contents => {
                let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
                bounded_line(said.join("; "), MAX_TEXT_BYTES)
            }
            CallFailure::InvalidArguments { violations, .. } => {
                format!(
                    "The arguments do not match the input schema in {} places.",
                    violations.len()
                )
            }
            CallFailure::Outdated => {
                "The plugin or its grant changed while the call waited for an answer.".to_owned()
            }
            CallFailure::Unapproved(unapproved) => unapproved.to_string(),
            CallFailure::Rejected(rejection) => rejection.reason.to_string(),
            CallFailure::Oversized(_) => "The result is larger than its client accepts.".to_owned(),
            CallFailure::Call(CallError::Denied {
                message: words,
                denial: denied,
            }) => bounded_line(format_args!("{words} {denied}"), MAX_TEXT_BYTES),
            CallFailure::Call(error) => bounded_line(error, MAX_TEXT_BYTES),
        }
    }
}

impl CallSink for ConsoleReport {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::Refused(rejection) => self.reject(*rejection),
            CallEvent::Resolved { target, trace, .. } => {
                self.set_plugin(&target.plugin().id);
                self.trace_id = trace.map(|trace| trace.trace_id.clone());
            }
            CallEvent::ApprovalDecided { decision, .. } => self.set_approval(decision),
            CallEvent::ArgumentsRecorded(arguments) => self.set_arguments(arguments),
            CallEvent::ApprovalWithdrawn {
                subject, decision, ..
            } => {
                self.set_plugin(&subject.plugin);
                self.set_approval(decision);
                self.send_unfinished();
            }
            CallEvent::Ended(answer) => self.finish(answer),
            _ => {}
        }
    }
}

impl Drop for ConsoleReport {
    fn drop(&mut self) {
        if !self.ended {
            self.send_unfinished();
        }
    }
}

/// Records the log messages and denials of a guest for the page of its call.
#[derive(Clone, Debug)]
pub(crate) struct TrailRecorder(CallTrail);

/// Shared by the threads of the call.
impl CallSink for &TrailRecorder {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            // As in the log, which has no such messages unless it is set to debug.
            CallEvent::GuestLogged {
                level: LogLevel::Debug,
                ..
            } => {}
            CallEvent::GuestLogged { level, message, .. } => {
                let level = format!("{level:?}").to_lowercase();
                self.0.record_message(&level, message);
            }
            CallEvent::Denied { what, .. } => self.0.record_denial(what),
            _ => {}
        }
    }
}

/// Shows denials and approvals to operators, for all calls.
impl CallSink for &ServerActivity {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::Denied {
                target,
                what,
                remedy,
                ..
            } => self.record_denial(DenialNote {
                at: SystemTime::now(),
                plugin: target.plugin().id.clone(),
                tool: target.public_name().to_owned(),
                operation: (*what).to_owned(),
                remedy: remedy.map(str::to_owned),
            }),
            // For a remembered approval, the console has no waiting call to update.
            CallEvent::ApprovalDecided { decision, .. }
                if decision.outcome == REMEMBERED_OUTCOME => {}
            CallEvent::ApprovalDecided {
                offer,
                caller,
                decision,
                arguments,
            } => self.record_approval(ApprovalNote {
                at: SystemTime::now(),
                caller: (*caller).to_owned(),
                plugin: offer.plugin.id.clone(),
                tool: offer.tool.name.clone(),
                status: decision.outcome,
                answered_by: decision.operator.clone(),
                arguments: *arguments,
                time_limit: offer
                    .plugin
                    .tool_context(&offer.definition.tool.name)
                    .limits
                    .ask_timeout,
            }),
            CallEvent::ApprovalWithdrawn {
                subject,
                caller,
                decision,
            } => self.record_approval(ApprovalNote {
                at: SystemTime::now(),
                caller: (*caller).to_owned(),
                plugin: subject.plugin.clone(),
                tool: subject.tool.clone(),
                status: decision.outcome,
                answered_by: None,
                arguments: Some(subject.arguments),
                time_limit: Duration::ZERO,
            }),
            _ => {}
        }
    }
}

/// Returns the first part of a reply.
fn reply_excerpt(reply: &CallReply) -> TextExcerpt {
    match reply {
        CallReply::Tool(ToolOutput {
            content,
            structured,
            ..
        }) => {
            let mut text = String::new();
            for block in content {
                if text.len() > MAX_TEXT_BYTES {
                    break;
                }
                let block = block.body.summary();
                // Slightly more than the maximum, so that the excerpt is recognized as truncated.
                let end = block.floor_char_boundary(MAX_TEXT_BYTES + 4);
                text.push_str(block.get(..end).unwrap_or_default());
                text.push('\n');
            }
            if let Some(structured) = structured.as_ref().filter(|_| text.is_empty()) {
                text = bounded_line(structured, 2 * MAX_TEXT_BYTES);
            }
            TextExcerpt::new(text.trim_end())
        }
        CallReply::Questions(_) => TextExcerpt::new("a question to the caller"),
        CallReply::Prompt(_) => TextExcerpt::new("a prompt"),
        CallReply::Resource(items) => TextExcerpt::new(&format!("{} contents", items.len())),
        CallReply::Completion(_) => TextExcerpt::new("a completion"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolbay_model::{ContentBlock, ContentBody, MediaContent, SchemaViolation};

    use super::*;

    fn content(body: ContentBody) -> ContentBlock {
        ContentBlock {
            body,
            audience: Vec::new(),
            priority: None,
            last_modified: None,
        }
    }

    #[test]
    fn a_result_is_cut_and_has_no_bytes_of_media() {
        let media = MediaContent {
            data: Bytes::from_static(b"abc"),
            mime_type: "image/png".to_owned(),
        };
        let output = ToolOutput {
            content: vec![
                content(ContentBody::Text("one".into())),
                content(ContentBody::Image(media)),
            ],
            ..ToolOutput::default()
        };
        assert_eq!(
            reply_excerpt(&CallReply::Tool(output)),
            TextExcerpt {
                text: "one\n[image/png, 3 bytes]".to_owned(),
                is_truncated: false
            }
        );
        let long = ToolOutput {
            content: vec![content(ContentBody::Text("é".repeat(1 << 20)))],
            ..ToolOutput::default()
        };
        let cut = reply_excerpt(&CallReply::Tool(long));
        assert!(cut.is_truncated && cut.text.len() <= MAX_TEXT_BYTES);
        let structured = ToolOutput {
            structured: Some(serde_json::json!({"a": [1, 2]})),
            ..ToolOutput::default()
        };
        assert_eq!(
            reply_excerpt(&CallReply::Tool(structured)).text,
            "{\"a\":[1,2]}"
        );
    }

    #[test]
    fn values_of_arguments_are_no_reason_unless_contents_are_kept() {
        let violation = || SchemaViolation {
            pointer: "/a".into(),
            message: "\"hunter2\" is not a number".into(),
        };
        let failure = CallFailure::InvalidArguments {
            violations: vec![violation()],
            example: None,
        };
        for contents in [false, true] {
            let watch = Arc::<ServerActivity>::default();
            let mut noticed = ConsoleReport::start(&watch, "stdio", "t", contents);
            assert_eq!(
                noticed.failure_reason(&failure).contains("hunter2"),
                contents
            );
            noticed.set_arguments(&ArgumentsRecord {
                text: Some("{}".into()),
                ..ArgumentsRecord::default()
            });
            assert_eq!(noticed.arguments.is_some(), contents);
        }
    }
}
