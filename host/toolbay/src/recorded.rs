//! Which calls are recorded, and what is recorded of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use serde_json::value::RawValue;
use toolbay_catalog::Offer;
use toolbay_mcp::Pattern;
use toolbay_model::{Answerable, CallError, Journal, Limit, QuestionKind, Reply, Usage};
use toolbay_recording::{Asked, Call, Missing, Outcome, Recorder, failed, replied};
use toolbay_sandbox::{Tape, Taped};
use toolbay_secrets::Secrets;

/// What a call takes beside what grows with it, in bytes.
const FIXED: usize = 4 << 10;

/// How long the end of a server waits for the end of the recording.
const PATIENCE: Duration = Duration::from_secs(5);

/// The recording of a server.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    recorder: Recorder,
    /// The tools whose calls are recorded; `None` for all.
    tools: Option<Arc<[Pattern]>>,
}

/// A call that is being recorded. One that is cancelled is not.
pub(crate) struct Taping {
    recorder: Recorder,
    tape: Tape,
    of: Of,
}

/// What is known of a call before its guest is entered.
struct Of {
    offer: Arc<Offer>,
    at: SystemTime,
    arguments: String,
    journal: Arc<Journal>,
    answerable: Answerable,
    kept: Option<ByteSize>,
}

/// What came of a call, or its digest.
enum Came {
    Reply(Reply),
    Outcome(Outcome),
}

/// Ends the recording when it is dropped.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Recorded);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.recorder.end(PATIENCE);
    }
}

impl Recorded {
    /// Records the calls of tools that fit one of the patterns.
    pub(crate) fn new(recorder: Recorder, tools: Option<Vec<Pattern>>) -> Self {
        Self { recorder, tools: tools.map(Into::into) }
    }

    /// Begins to record a call of a tool with these arguments; `None` if it is not recorded.
    pub(crate) fn begin(
        &self,
        offer: &Arc<Offer>,
        arguments: &str,
        journal: &Arc<Journal>,
        answerable: Answerable,
        kept: Option<ByteSize>,
    ) -> Option<Taping> {
        let name = &offer.tool.name;
        if self.tools.as_ref().is_some_and(|tools| !tools.iter().any(|pattern| pattern.fits(name))) {
            return None;
        }
        let mut room = self.recorder.room()?;
        if !room.take(FIXED) {
            self.recorder.lose();
            return None;
        }
        // Without random bytes of its own, a call would have those of others.
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).ok()?;
        // What is too large is not copied.
        let answers: usize = journal.answers.values().map(String::len).sum();
        let fits = room.take(arguments.len() + answers);
        let tape = Tape::record(seed, self.recorder.salt(), room);
        if !fits {
            tape.overflow();
        }
        let arguments = if fits { arguments.to_owned() } else { String::new() };
        let (offer, journal, at) = (Arc::clone(offer), Arc::clone(journal), SystemTime::now());
        let of = Of { offer, at, arguments, journal, answerable, kept };
        Some(Taping { recorder: self.recorder.clone(), tape, of })
    }
}

impl Taping {
    /// What the sandbox records on.
    pub(crate) fn tape(&self) -> Tape {
        self.tape.clone()
    }

    /// The call ended with this result of its guest, of which `size` bytes were returned.
    pub(crate) fn end(self, result: &Result<Option<Reply>, CallError>, size: usize, usage: Usage) {
        let Self { recorder, tape, mut of } = self;
        let Some(mut taped) = tape.taped() else { return };
        let mut missing = Vec::new();
        match result {
            Err(CallError::Limit { limit: Limit::Deadline(_), .. }) => missing.push(Missing::Deadline),
            Err(CallError::Internal(_)) => missing.push(Missing::Internal),
            _ => {}
        }
        let came = match result {
            Ok(Some(reply)) if taped.take(size) => Came::Reply(reply.clone()),
            Ok(Some(reply)) => Came::Outcome(Outcome::Value(replied(reply)).digest()),
            // No tool is unknown to its plugin.
            Ok(None) => return,
            Err(error) => Came::Outcome(Outcome::Value(failed(error))),
        };
        let number = recorder.number();
        let room = taped.room().or_else(|| {
            // What did not fit is left out, and so is the rest.
            of.arguments = String::new();
            recorder.room().and_then(|mut room| room.take(FIXED).then_some(room))
        });
        let make = move || of.call(number, taped, came, missing, usage);
        match room {
            Some(room) => recorder.record(room, make),
            None => recorder.lose(),
        }
    }
}

impl Of {
    /// What is written: nothing of it is secret. Takes time in proportion to its size.
    fn call(self, number: u64, taped: Taped, came: Came, mut missing: Vec<Missing>, usage: Usage) -> Call {
        let Self { offer, at, arguments, journal, answerable, kept } = self;
        let plugin = &offer.plugin;
        let environment = plugin.environment(&offer.definition.tool.name);
        let permissions = &environment.permissions;
        let secrets = Arc::clone(taped.secrets());
        let (mut answers, lacks) = taped.answers();
        missing.extend(lacks);
        let mut given = [&arguments].into_iter().chain(environment.config.values()).chain(journal.answers.values());
        answers.redacted |= !secrets.is_empty() && given.any(|text| secrets.are_in(text.as_bytes()));
        let arguments = RawValue::from_string(secrets.redact(&arguments).into_owned()).ok();
        if arguments.is_none() && !missing.contains(&Missing::TooLarge) {
            missing.push(Missing::Secret);
        }
        let redacted = |values: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            values.iter().map(|(key, value)| (key.clone(), secrets.redact(value).into_owned())).collect()
        };
        let kinds = QuestionKind::ALL.into_iter().filter(|kind| answerable.contains(*kind)).collect();
        let hex = |digest: toolbay_model::Digest| digest.to_string();
        let limits = serde_json::to_value(&environment.limits).and_then(serde_json::from_value);
        let call = Call {
            number,
            at: humantime::format_rfc3339_millis(at).to_string(),
            plugin: plugin.id.clone(),
            plugin_sha256: plugin.digest().map(hex).unwrap_or_default(),
            grant_sha256: plugin.terms.grant.map(hex),
            tool: offer.tool.name.clone(),
            name: offer.definition.tool.name.clone(),
            missing,
            arguments,
            limits: limits.unwrap_or_default(),
            kept: kept.map(|kept| kept.as_u64()),
            deterministic: permissions.deterministic,
            http: !permissions.http.is_empty(),
            mounts: !permissions.mounts.is_empty(),
            scratch: permissions.scratch.as_ref().and_then(|scratch| serde_json::to_value(scratch).ok()),
            config: redacted(&environment.config),
            secrets: environment.secrets.secrets().iter().map(|secret| secret.name.clone()).collect(),
            asked: Asked { kinds, rounds: journal.rounds, answers: redacted(&journal.answers) },
            answers,
            result: match came {
                Came::Reply(reply) => Outcome::Value(replied(&reply)),
                Came::Outcome(outcome) => outcome,
            },
            usage: usage.into(),
        };
        if is_public(&call, &secrets) { call } else { call.bare(Missing::Secret) }
    }
}

/// Whether no secret is in what is written of a call: its parts were redacted one by one.
fn is_public(call: &Call, secrets: &Secrets) -> bool {
    secrets.is_empty() || serde_json::to_vec(call).is_ok_and(|text| !secrets.are_in(&text))
}
