//! Selection of the calls to record, and assembly of their records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use serde_json::value::RawValue;
use toolbay_catalog::ToolOffer;
use toolbay_mcp::NamePattern;
use toolbay_model::{
    CallError, CallJournal, CallReply, CallUsage, Limit, QuestionKind, QuestionKindSet,
};
use toolbay_recording::{
    CallRecorder, MissingInput, RecordedCall, RecordedOutcome, RecordedQuestions, error_result,
    reply_result,
};
use toolbay_sandbox::{ReplayTape, TapedCall};
use toolbay_secrets::SecretFilter;

use crate::approval::call_target::CallTarget;
use crate::observe::call_event::{CallEvent, CallSink};

/// Fixed memory of a recorded call, in bytes, in addition to its contents.
const CALL_OVERHEAD_BYTES: usize = 4 << 10;

/// Maximum time that server shutdown waits for the recording to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The recording of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerRecording {
    recorder: CallRecorder,
    /// Patterns of the tools to record; `None` for all.
    tools: Option<Arc<[NamePattern]>>,
}

/// Records one call, if its tool is recorded.
pub(crate) struct CallRecording {
    recording: ServerRecording,
    /// Set while a guest runs and its result is checked.
    run: Option<RecordedRun>,
}

/// A call that is being recorded. A cancelled call is not recorded.
struct RecordedRun {
    recorder: CallRecorder,
    tape: ReplayTape,
    context: RunContext,
}

/// Data of a call that is available before its guest is entered.
struct RunContext {
    offer: Arc<ToolOffer>,
    at: SystemTime,
    arguments: String,
    journal: Arc<CallJournal>,
    answerable: QuestionKindSet,
    max_stored: Option<ByteSize>,
}

/// The reply of a call, or its digest.
enum RunResult {
    Reply(CallReply),
    Outcome(RecordedOutcome),
}

/// Guard that ends the recording when it is dropped.
#[derive(Debug)]
pub(crate) struct RecordingGuard(pub(crate) ServerRecording);

impl Drop for RecordingGuard {
    fn drop(&mut self) {
        self.0.recorder.finish(FLUSH_TIMEOUT);
    }
}

impl ServerRecording {
    /// Records the calls of tools that match one of the patterns.
    pub(crate) fn new(recorder: CallRecorder, tools: Option<Vec<NamePattern>>) -> Self {
        Self {
            recorder,
            tools: tools.map(Into::into),
        }
    }

    /// Starts to record a call of a tool with these arguments. Returns `None` if the call is not
    /// recorded.
    fn start_call(
        &self,
        offer: &Arc<ToolOffer>,
        arguments: &str,
        journal: &Arc<CallJournal>,
        answerable: QuestionKindSet,
        max_stored: Option<ByteSize>,
    ) -> Option<RecordedRun> {
        let name = &offer.tool.name;
        if self
            .tools
            .as_ref()
            .is_some_and(|tools| !tools.iter().any(|pattern| pattern.matches(name)))
        {
            return None;
        }
        let mut room = self.recorder.new_reservation()?;
        if !room.try_reserve(CALL_OVERHEAD_BYTES) {
            self.recorder.count_lost();
            return None;
        }
        // The call needs its own random bytes: with a fixed seed, calls would share them.
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).ok()?;
        // Contents that are too large are not copied.
        let answers: usize = journal.answers.values().map(String::len).sum();
        let fits = room.try_reserve(arguments.len() + answers);
        let tape = ReplayTape::record(seed, self.recorder.salt(), room);
        if !fits {
            tape.mark_too_large();
        }
        let arguments = if fits {
            arguments.to_owned()
        } else {
            String::new()
        };
        let offer = Arc::clone(offer);
        let journal = Arc::clone(journal);
        let at = SystemTime::now();
        let of = RunContext {
            offer,
            at,
            arguments,
            journal,
            answerable,
            max_stored,
        };
        Some(RecordedRun {
            recorder: self.recorder.clone(),
            tape,
            context: of,
        })
    }
}

impl CallRecording {
    /// Creates the recording of one call.
    pub(crate) fn new(recording: &ServerRecording) -> Self {
        Self {
            recording: recording.clone(),
            run: None,
        }
    }

    /// Returns the tape that the sandbox records to. It records nothing if the call is not
    /// recorded.
    pub(crate) fn tape(&self) -> ReplayTape {
        self.run
            .as_ref()
            .map(|run| run.tape.clone())
            .unwrap_or_default()
    }
}

impl CallSink for CallRecording {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::GuestEntering {
                target: CallTarget::Tool(offer),
                arguments,
                journal,
                answerable,
                kept,
            } => {
                self.run = self
                    .recording
                    .start_call(offer, arguments, journal, *answerable, *kept);
            }
            CallEvent::ResultChecked { result, size, run } => {
                // Without a guest, there is nothing to replay.
                if let Some(recorded) = self.run.take().filter(|_| run.entered.is_some()) {
                    recorded.finish(result, *size, run.usage);
                }
            }
            CallEvent::StagesEnded { .. } => self.run = None,
            _ => {}
        }
    }
}

impl RecordedRun {
    /// Records the guest's result, of which `size` bytes were returned.
    fn finish(self, result: &Result<Option<CallReply>, CallError>, size: usize, usage: CallUsage) {
        let Self {
            recorder,
            tape,
            context: mut of,
        } = self;
        let Some(mut taped) = tape.finish_recording() else {
            return;
        };
        let mut missing = Vec::new();
        match result {
            Err(CallError::Limit {
                limit: Limit::Deadline(_),
                ..
            }) => missing.push(MissingInput::Deadline),
            Err(CallError::Internal(_)) => missing.push(MissingInput::Internal),
            _ => {}
        }
        let outcome = match result {
            Ok(Some(reply)) if taped.reserve(size) => RunResult::Reply(reply.clone()),
            Ok(Some(reply)) => {
                RunResult::Outcome(RecordedOutcome::Value(reply_result(reply)).into_digest())
            }
            // A tool is never unknown to its own plugin.
            Ok(None) => return,
            Err(error) => RunResult::Outcome(RecordedOutcome::Value(error_result(error))),
        };
        let number = recorder.next_number();
        let room = taped.take_reservation().or_else(|| {
            // Contents that did not fit are left out, and so are the arguments.
            of.arguments = String::new();
            recorder
                .new_reservation()
                .and_then(|mut room| room.try_reserve(CALL_OVERHEAD_BYTES).then_some(room))
        });
        let make = move || of.into_record(number, taped, outcome, missing, usage);
        match room {
            Some(room) => recorder.record(room, make),
            None => recorder.count_lost(),
        }
    }
}

impl RunContext {
    /// Builds the record to write, without secrets. Takes time in proportion to its size.
    fn into_record(
        self,
        number: u64,
        taped: TapedCall,
        came: RunResult,
        mut missing: Vec<MissingInput>,
        usage: CallUsage,
    ) -> RecordedCall {
        let Self {
            offer,
            at,
            arguments,
            journal,
            answerable,
            max_stored: kept,
        } = self;
        let plugin = &offer.plugin;
        let environment = plugin.tool_context(&offer.definition.tool.name);
        let permissions = &environment.permissions;
        let secrets = Arc::clone(taped.secrets());
        let (mut answers, lacks) = taped.into_answers();
        missing.extend(lacks);
        let mut given = [&arguments]
            .into_iter()
            .chain(environment.config.values())
            .chain(journal.answers.values());
        answers.redacted |=
            !secrets.is_empty() && given.any(|text| secrets.contains_secret(text.as_bytes()));
        let arguments = RawValue::from_string(secrets.redact(&arguments).into_owned()).ok();
        if arguments.is_none() && !missing.contains(&MissingInput::TooLarge) {
            missing.push(MissingInput::Secret);
        }
        let redacted = |values: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            values
                .iter()
                .map(|(key, value)| (key.clone(), secrets.redact(value).into_owned()))
                .collect()
        };
        let kinds = QuestionKind::ALL
            .into_iter()
            .filter(|kind| answerable.contains(*kind))
            .collect();
        let hex = |digest: toolbay_model::Digest| digest.to_string();
        let limits = serde_json::to_value(&environment.limits).and_then(serde_json::from_value);
        let call = RecordedCall {
            number,
            at: humantime::format_rfc3339_millis(at).to_string(),
            plugin: plugin.id.clone(),
            plugin_sha256: plugin.digest().map(hex).unwrap_or_default(),
            grant_sha256: plugin.terms.grant_digest.map(hex),
            tool: offer.tool.name.clone(),
            name: offer.definition.tool.name.clone(),
            missing,
            arguments,
            limits: limits.unwrap_or_default(),
            kept: kept.map(|kept| kept.as_u64()),
            deterministic: permissions.deterministic,
            http: !permissions.http.is_empty(),
            mounts: !permissions.mounts.is_empty(),
            scratch: permissions
                .scratch
                .as_ref()
                .and_then(|scratch| serde_json::to_value(scratch).ok()),
            config: redacted(&environment.config),
            secrets: environment
                .secrets
                .secrets()
                .iter()
                .map(|secret| secret.name.clone())
                .collect(),
            asked: RecordedQuestions {
                kinds,
                rounds: journal.rounds,
                answers: redacted(&journal.answers),
            },
            answers,
            result: match came {
                RunResult::Reply(reply) => RecordedOutcome::Value(reply_result(&reply)),
                RunResult::Outcome(outcome) => outcome,
            },
            usage: usage.into(),
        };
        if is_free_of_secrets(&call, &secrets) {
            call
        } else {
            call.without_content(MissingInput::Secret)
        }
    }
}

/// Returns whether the written record contains no secret. Its parts were redacted separately, so
/// the whole is checked again.
fn is_free_of_secrets(call: &RecordedCall, secrets: &SecretFilter) -> bool {
    secrets.is_empty() || serde_json::to_vec(call).is_ok_and(|text| !secrets.contains_secret(&text))
}
