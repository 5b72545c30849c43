//! Replays one recorded call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytesize::ByteSize;
use serde_json::{Map, Value, json};
use toolbay_model::text::clean_line;
use toolbay_model::{
    CallError, CallJournal, CallReply, Interrupt, Limit, Limits, NoopObserver, QuestionKindSet,
};
use toolbay_policy::Permissions;
use toolbay_recording::{RecordedCall, ReplayedCall, error_result, reply_result, variable_digest};
use toolbay_sandbox::{
    CallContext, PluginContext, PluginRequest, ReplayInput, ReplayTape, Sandbox, UncheckedReply,
};
use toolbay_schema::JsonSchema;
use toolbay_secrets::{FixedSecrets, SecretSource, SecretSpec, SecretVault};

use super::super::plugin_file::MAX_REASON_BYTES;
use super::plugins::ReplayPlugin;
use crate::call::output_validation::{pair_with_schema, reject_violations};

/// Replays recorded calls.
pub(super) struct CallReplayer {
    sandbox: Sandbox,
    /// Maximum limits that this machine allows.
    ceiling: Limits,
}

/// The outcome of a replayed call, or the reasons why it cannot be replayed.
type ReplayOutcome = Result<ReplayedCall, Vec<String>>;

impl CallReplayer {
    pub(super) fn new(sandbox: Sandbox, ceiling: Limits) -> Self {
        Self { sandbox, ceiling }
    }

    /// Replays a call with its recorded answers. `salt` is the salt of the recording's digests.
    ///
    /// # Errors
    ///
    /// The recording is invalid. The message is the reason.
    pub(super) async fn replay(
        &self,
        plugin: &Arc<ReplayPlugin>,
        call: &RecordedCall,
        salt: &str,
    ) -> Result<ReplayOutcome, String> {
        let (limits, lowered) = call.limits(&self.ceiling)?;
        if lowered {
            let why = "its limits are above the ceilings of this configuration (raise them under [ceilings])";
            return Ok(Err(vec![why.to_owned()]));
        }
        let Some(arguments) = &call.arguments else {
            return Err("the call has no arguments".to_owned());
        };
        let arguments = arguments.get().to_owned();
        let Ok(values) = serde_json::from_str::<Map<String, Value>>(&arguments) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let variables = match recorded_variables(call, salt) {
            Ok(variables) => variables,
            Err(why) => return Ok(Err(vec![why])),
        };
        let plugin_context = replay_context(call, limits, &variables)?;
        let answers = call.answers.clone();
        let tape = ReplayTape::replay(ReplayInput {
            answers,
            variables,
            http: call.http,
            mounts: call.mounts,
        });
        let journal = CallJournal {
            answers: call.asked.answers.clone(),
            rounds: call.asked.rounds,
            ..CallJournal::default()
        };
        let answerable = call
            .asked
            .kinds
            .iter()
            .fold(QuestionKindSet::default(), |all, kind| all.with(*kind));
        let sandbox = self.sandbox.clone();
        let plugin = Arc::clone(plugin);
        let name = call.name.clone();
        let max_stored = call.kept.map(ByteSize::b);
        let guest_tape = tape.clone();
        let running = self.sandbox.spawn(async move {
            let Some(tool) = plugin.tool(&name) else {
                let message = format!(
                    "the plugin has no tool {:?}",
                    clean_line(&name, MAX_REASON_BYTES)
                );
                return (json!({"error": "unknown-tool", "message": message}), None);
            };
            let deadline = Instant::now() + plugin_context.limits.timeout;
            let interrupt = Interrupt::with_deadline(deadline);
            match tool
                .input
                .violations_until(&Value::Object(values), &interrupt)
            {
                Ok(violations) if violations.is_empty() => {}
                Ok(violations) => {
                    let words: Vec<String> = violations.iter().map(ToString::to_string).collect();
                    return (
                        json!({"error": "invalid-arguments", "message": words.join("; ")}),
                        None,
                    );
                }
                Err(_) => {
                    return (
                        error_result(&CallError::limit(Limit::Deadline(
                            plugin_context.limits.timeout,
                        ))),
                        None,
                    );
                }
            }
            let context = CallContext {
                environment: &plugin_context,
                caller: None,
                trace: None,
                observer: Arc::new(NoopObserver),
                answerable,
                journal: Arc::new(journal),
                deadline,
                tape: guest_tape,
                compute_permit: None,
            };
            let request = PluginRequest::Tool {
                name: &tool.tool.name,
                arguments: &arguments,
            };
            let finished = sandbox.call(&plugin.prepared, context, request).await;
            let limits = &plugin_context.limits;
            let result = finished.result.and_then(|returned| {
                check_reply(
                    returned,
                    limits,
                    max_stored,
                    tool.output.as_ref(),
                    &interrupt,
                )
            });
            let result = match result {
                Ok(Some(reply)) => reply_result(&reply),
                Ok(None) => Value::Null,
                Err(error) => error_result(&error),
            };
            (result, Some(finished.usage))
        });
        let (result, usage) = running
            .await
            .map_err(|error| format!("the call ended unexpectedly: {error}"))?;
        let deviation = tape.deviation();
        if !deviation.missing.is_empty() {
            return Ok(Err(deviation
                .missing
                .iter()
                .map(ToString::to_string)
                .collect()));
        }
        let usage = usage.unwrap_or_default().into();
        Ok(Ok(ReplayedCall {
            result,
            usage,
            unrecorded: deviation.unrecorded,
            not_repeated: deviation.not_repeated,
        }))
    }
}

/// Checks a guest's reply in the same way as a server.
fn check_reply(
    returned: UncheckedReply,
    limits: &Limits,
    max_stored: Option<ByteSize>,
    output: Option<&Arc<JsonSchema>>,
    interrupt: &Interrupt,
) -> Result<Option<CallReply>, CallError> {
    let reply = returned.check(limits, max_stored, interrupt)?;
    let Some((schema, value)) = pair_with_schema(output, reply.as_ref())? else {
        return Ok(reply);
    };
    let violations = schema.violations_until(value, interrupt);
    reject_violations(
        reply,
        &violations.map_err(|_| CallError::limit(Limit::Deadline(limits.timeout)))?,
    )
}

/// Returns the environment variables of the call. This process must have them with the recorded
/// values.
///
/// # Errors
///
/// A variable differs.
fn recorded_variables(call: &RecordedCall, salt: &str) -> Result<BTreeMap<String, String>, String> {
    let check_variable = |(name, digest): (&String, &String)| {
        // A recording cannot disclose variables: it only receives values whose digest it already
        // contains.
        let value = std::env::var(name)
            .ok()
            .filter(|value| variable_digest(salt, name, value) == *digest);
        let differs = || {
            let name = clean_line(name, MAX_REASON_BYTES);
            format!(
                "the environment variable {name} has another value than in the recording: set {name} to that value to run the call"
            )
        };
        Ok((name.clone(), value.ok_or_else(differs)?))
    };
    let variables: BTreeMap<_, _> = call
        .answers
        .variables
        .iter()
        .map(check_variable)
        .collect::<Result<_, String>>()?;
    Ok(variables
        .into_iter()
        .chain(call.answers.marked.clone())
        .collect())
}

/// Returns the context of the call, which the recorded answers complement.
fn replay_context(
    call: &RecordedCall,
    limits: Limits,
    variables: &BTreeMap<String, String>,
) -> Result<PluginContext, String> {
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
        let source = SecretSource::Environment(name.clone());
        SecretSpec {
            name: name.clone(),
            source,
            credential_rule: None,
        }
    };
    let secrets: Vec<SecretSpec> = call.secrets.iter().map(secret).collect();
    let marks = FixedSecrets::with_test_values(&secrets, |name| Some(format!("[secret:{name}]")));
    let secrets = SecretVault::new("the recording", Path::new(""), secrets, marks)?;
    Ok(PluginContext {
        limits,
        permissions,
        config: Arc::new(call.config.clone()),
        secrets,
        ..PluginContext::default()
    })
}
