//! Replays one recorded call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytesize::ByteSize;
use serde_json::{Map, Value, json};
use toolbay_model::text::line;
use toolbay_model::{Answerable, CallError, Interrupt, Journal, Limit, Limits, Quiet, Reply};
use toolbay_policy::Permissions;
use toolbay_recording::{Call, Replayed, failed, replied, variable};
use toolbay_sandbox::{Again, Asked, Entry, Environment, Sandbox, Tape, Unchecked};
use toolbay_schema::Schema;
use toolbay_secrets::{Fixed, Secret, Source, Vault};

use super::super::single::WHY;
use super::plugins::Plugin;
use crate::promise::{judged, structured};

/// Replays recorded calls.
pub(super) struct Runner {
    sandbox: Sandbox,
    /// Maximum limits that this machine allows.
    ceiling: Limits,
}

/// The outcome of a replayed call, or the reasons why it cannot be replayed.
type Ran = Result<Replayed, Vec<String>>;

impl Runner {
    pub(super) fn new(sandbox: Sandbox, ceiling: Limits) -> Self {
        Self { sandbox, ceiling }
    }

    /// Replays a call with its recorded answers. `salt` is the salt of the recording's digests.
    ///
    /// # Errors
    ///
    /// The recording is invalid. The message is the reason.
    pub(super) async fn run(&self, plugin: &Arc<Plugin>, call: &Call, salt: &str) -> Result<Ran, String> {
        let (limits, lowered) = call.limits(&self.ceiling)?;
        if lowered {
            let why = "its limits are above the ceilings of this configuration (raise them under [ceilings])";
            return Ok(Err(vec![why.to_owned()]));
        }
        let Some(arguments) = &call.arguments else { return Err("the call has no arguments".to_owned()) };
        let arguments = arguments.get().to_owned();
        let Ok(values) = serde_json::from_str::<Map<String, Value>>(&arguments) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let variables = match variables(call, salt) {
            Ok(variables) => variables,
            Err(why) => return Ok(Err(vec![why])),
        };
        let environment = environment(call, limits, &variables)?;
        let answers = call.answers.clone();
        let tape = Tape::play(Again { answers, variables, http: call.http, mounts: call.mounts });
        let journal = Journal { answers: call.asked.answers.clone(), rounds: call.asked.rounds, ..Journal::default() };
        let answerable = call.asked.kinds.iter().fold(Answerable::default(), |all, kind| all.with(*kind));
        let (sandbox, plugin, name) = (self.sandbox.clone(), Arc::clone(plugin), call.name.clone());
        let (kept, played) = (call.kept.map(ByteSize::b), tape.clone());
        let running = self.sandbox.spawn(async move {
            let Some(tool) = plugin.tool(&name) else {
                let message = format!("the plugin has no tool {:?}", line(&name, WHY));
                return (json!({"error": "unknown-tool", "message": message}), None);
            };
            let deadline = Instant::now() + environment.limits.timeout;
            let interrupt = Interrupt::at(deadline);
            match tool.input.violations_until(&Value::Object(values), &interrupt) {
                Ok(violations) if violations.is_empty() => {}
                Ok(violations) => {
                    let words: Vec<String> = violations.iter().map(ToString::to_string).collect();
                    return (json!({"error": "invalid-arguments", "message": words.join("; ")}), None);
                }
                Err(_) => {
                    return (failed(&CallError::limit(Limit::Deadline(environment.limits.timeout))), None);
                }
            }
            let entry = Entry {
                environment: &environment,
                caller: None,
                trace: None,
                observer: Arc::new(Quiet),
                answerable,
                journal: Arc::new(journal),
                deadline,
                tape: played,
                place: None,
            };
            let asked = Asked::Tool { name: &tool.tool.name, arguments: &arguments };
            let finished = sandbox.call(&plugin.callable, entry, asked).await;
            let limits = &environment.limits;
            let result =
                finished.result.and_then(|returned| check(returned, limits, kept, tool.output.as_ref(), &interrupt));
            let result = match result {
                Ok(Some(reply)) => replied(&reply),
                Ok(None) => Value::Null,
                Err(error) => failed(&error),
            };
            (result, Some(finished.usage))
        });
        let (result, usage) = running.await.map_err(|error| format!("the call ended unexpectedly: {error}"))?;
        let deviation = tape.deviation();
        if !deviation.missing.is_empty() {
            return Ok(Err(deviation.missing.iter().map(ToString::to_string).collect()));
        }
        let usage = usage.unwrap_or_default().into();
        Ok(Ok(Replayed { result, usage, unknown: deviation.unknown, undone: deviation.undone }))
    }
}

/// Checks a guest's reply in the same way as a server.
fn check(
    returned: Unchecked,
    limits: &Limits,
    kept: Option<ByteSize>,
    output: Option<&Arc<Schema>>,
    interrupt: &Interrupt,
) -> Result<Option<Reply>, CallError> {
    let reply = returned.check(limits, kept, interrupt)?;
    let Some((schema, value)) = structured(output, reply.as_ref())? else { return Ok(reply) };
    let violations = schema.violations_until(value, interrupt);
    judged(reply, &violations.map_err(|_| CallError::limit(Limit::Deadline(limits.timeout)))?)
}

/// Returns the environment variables of the call. This process must have them with the recorded
/// values.
///
/// # Errors
///
/// A variable differs.
fn variables(call: &Call, salt: &str) -> Result<BTreeMap<String, String>, String> {
    let own = |(name, digest): (&String, &String)| {
        // A recording cannot disclose variables: it only receives values whose digest it already
        // contains.
        let value = std::env::var(name).ok().filter(|value| variable(salt, name, value) == *digest);
        let differs = || {
            let name = line(name, WHY);
            format!("the environment variable {name} is not what it was: set {name} to that value to run the call")
        };
        Ok((name.clone(), value.ok_or_else(differs)?))
    };
    let own: BTreeMap<_, _> = call.answers.variables.iter().map(own).collect::<Result<_, String>>()?;
    Ok(own.into_iter().chain(call.answers.marked.clone()).collect())
}

/// Returns the context of the call, which the recorded answers complement.
fn environment(call: &Call, limits: Limits, variables: &BTreeMap<String, String>) -> Result<Environment, String> {
    let scratch = call.scratch.clone().map(serde_json::from_value).transpose();
    let permissions = Permissions {
        environment: variables.keys().cloned().collect(),
        scratch: scratch.map_err(|error| format!("scratch: {error}"))?,
        deterministic: call.deterministic,
        ..Permissions::default()
    };
    // Secrets are replaced by their marks, which are redacted like the secrets in any form that the
    // guest produces.
    let secret = |name: &String| {
        let source = Source::Environment(name.clone());
        Secret { name: name.clone(), source, carried: None }
    };
    let secrets: Vec<Secret> = call.secrets.iter().map(secret).collect();
    let marks = Fixed::supposed(&secrets, |name| Some(format!("[secret:{name}]")));
    let secrets = Vault::new("the recording", Path::new(""), secrets, marks)?;
    Ok(Environment { limits, permissions, config: Arc::new(call.config.clone()), secrets, ..Environment::default() })
}
