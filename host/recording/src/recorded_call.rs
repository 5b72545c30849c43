//! Recorded calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::{CallUsage, Limits, LimitsPatch, QuestionKind};

use crate::host_answers::HostAnswers;
use crate::missing_input::MissingInput;
use crate::outcome::RecordedOutcome;

/// Recorded tool call.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// Sequence number, starting at 1 at each start of a server.
    pub number: u64,
    /// Time at which the guest was entered, as RFC 3339.
    pub at: String,
    /// Id of the plugin.
    pub plugin: String,
    /// SHA-256 of the component, in hexadecimal.
    pub plugin_sha256: String,
    /// SHA-256 of the grant's text, in hexadecimal; `None` if there was no grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_sha256: Option<String>,
    /// Name of the tool for clients.
    pub tool: String,
    /// Name of the tool within the plugin.
    pub name: String,
    /// Reasons that the call cannot be replayed; empty if it can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingInput>,
    /// Arguments that the guest received; `None` if they could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// Limits by key: sizes in bytes, and durations in milliseconds under `<key>_ms`.
    pub limits: BTreeMap<String, u64>,
    /// Maximum size of the result, in bytes, if it is greater than `limits.output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// True if clocks and random numbers are derived from the arguments
    /// (`permissions.deterministic`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// True if the call could send HTTP requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http: bool,
    /// True if the call had mounted directories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mounts: bool,
    /// Temporary directory of the grant (`permissions.scratch`), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Value>,
    /// Values of the grant's `[config]`, without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Names of the grant's secrets. Their values are redacted as `[secret:NAME]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Questions that the call could ask its caller, and previous answers.
    #[serde(default, skip_serializing_if = "RecordedQuestions::is_empty")]
    pub asked: RecordedQuestions,
    /// Host answers that the guest received.
    pub answers: HostAnswers,
    /// Outcome of the call.
    pub result: RecordedOutcome,
    /// Resource usage of the call.
    pub usage: RecordedUsage,
}

/// Questions that a call could ask its caller, and previous answers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedQuestions {
    /// Kinds of questions that the client supports.
    pub kinds: Vec<QuestionKind>,
    /// Number of earlier rounds of questions.
    pub rounds: u32,
    /// Results of the client by question key, JSON objects as text.
    pub answers: BTreeMap<String, String>,
}

impl RecordedQuestions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Resource usage of a call.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedUsage {
    /// Number of instructions.
    pub fuel: u64,
    /// Peak memory, in bytes.
    pub memory: u64,
    /// Wall-clock time, in nanoseconds.
    pub wall_ns: u64,
}

impl From<CallUsage> for RecordedUsage {
    fn from(usage: CallUsage) -> Self {
        let wall_ns = u64::try_from(usage.wall.as_nanos()).unwrap_or(u64::MAX);
        Self {
            fuel: usage.fuel,
            memory: usage.memory,
            wall_ns,
        }
    }
}

impl RecordedCall {
    /// Returns the limits of the call, clamped to `ceiling`, and whether a limit was lowered.
    ///
    /// # Errors
    ///
    /// Returns an error if a limit is unknown or its value is invalid.
    pub fn limits(&self, ceiling: &Limits) -> Result<(Limits, bool), String> {
        let mut keys = Map::new();
        for (key, value) in &self.limits {
            let (key, value) = match key.strip_suffix("_ms") {
                Some(limit_key) => (limit_key, Value::from(format!("{value}ms"))),
                None => (key.as_str(), Value::from(*value)),
            };
            if keys.insert(key.to_owned(), value).is_some() {
                return Err(format!("limits: {key} occurs twice"));
            }
        }
        let patch = serde_json::from_value::<LimitsPatch>(Value::Object(keys));
        let patch = patch.map_err(|error| format!("limits: {error}"))?;
        let (limits, clamps) = Limits::DEFAULT.with(&patch, ceiling);
        Ok((limits, !clamps.is_empty()))
    }

    /// Removes large data and external input. The call can then not be replayed, for the reason
    /// `missing_input`, which is recorded.
    #[must_use]
    pub fn without_content(mut self, missing_input: MissingInput) -> Self {
        let HostAnswers { began, seed, .. } = self.answers;
        self.answers = HostAnswers {
            began,
            seed,
            ..HostAnswers::default()
        };
        self.arguments = None;
        self.config.clear();
        self.asked.answers.clear();
        self.result = self.result.into_digest();
        if !self.missing.contains(&missing_input) {
            self.missing.push(missing_input);
        }
        self
    }
}

/// Returns the recorded digest of an environment variable: SHA-256 of the recording's salt, the
/// name and the value, in hexadecimal.
pub fn variable_digest(salt: &str, name: &str, value: &str) -> String {
    let mut hash = Sha256::new();
    for part in [salt, name, value] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a call of the tool `add`.
    pub(crate) fn call(number: u64) -> RecordedCall {
        let limits = serde_json::to_value(Limits::DEFAULT).unwrap();
        RecordedCall {
            number,
            at: "2026-01-02T03:04:05Z".to_owned(),
            plugin: "calculator".to_owned(),
            plugin_sha256: "ab".repeat(32),
            grant_sha256: None,
            tool: "add".to_owned(),
            name: "add".to_owned(),
            missing: Vec::new(),
            arguments: Some(RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap()),
            limits: serde_json::from_value(limits).unwrap(),
            kept: None,
            deterministic: false,
            http: false,
            mounts: false,
            scratch: None,
            config: BTreeMap::new(),
            secrets: Vec::new(),
            asked: RecordedQuestions::default(),
            answers: HostAnswers::default(),
            result: RecordedOutcome::Value(
                serde_json::json!({"content": [{"type": "text", "text": "2"}]}),
            ),
            usage: RecordedUsage {
                fuel: 10,
                memory: 20,
                wall_ns: 30,
            },
        }
    }

    #[test]
    fn limits_survive_a_round_trip() {
        let (limits, lowered) = call(1).limits(&Limits::CEILING).unwrap();
        assert_eq!((limits, lowered), (Limits::DEFAULT, false));
        let mut other = call(1);
        other.limits.insert("fuel".to_owned(), u64::MAX);
        let (limits, lowered) = other.limits(&Limits::CEILING).unwrap();
        assert_eq!((limits.fuel, lowered), (Limits::CEILING.fuel, true));
        for (key, value) in [
            ("petrol", 1),
            ("fuel", 0),
            ("timeout", 1),
            ("timeout_ms", u64::MAX),
        ] {
            let mut invalid_call = call(1);
            invalid_call.limits.insert(key.to_owned(), value);
            assert!(
                invalid_call.limits(&Limits::CEILING).is_err(),
                "{key} = {value}"
            );
        }
    }

    #[test]
    fn variable_digest_is_stable_and_hides_the_value() {
        let digest = variable_digest("salt", "LANG", "C");
        assert_eq!(digest, variable_digest("salt", "LANG", "C"));
        for other in [
            variable_digest("salt", "LANGC", ""),
            variable_digest("", "LANG", "C"),
            variable_digest("salt", "LANG", "D"),
        ] {
            assert_ne!(digest, other);
        }
    }
}
