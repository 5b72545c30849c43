//! One recorded call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::{CallUsage, Limits, LimitsPatch, QuestionKind};

use crate::answers::HostAnswers;
use crate::missing::MissingInput;
use crate::outcome::RecordedOutcome;

/// One recorded call of a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// Its number, from 1 at each start of a server.
    pub number: u64,
    /// When its guest was entered, as RFC 3339.
    pub at: String,
    /// The plugin's id.
    pub plugin: String,
    /// SHA-256 of the component, in hexadecimal.
    pub plugin_sha256: String,
    /// SHA-256 of the grant's text, in hexadecimal; `None` if there was no grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_sha256: Option<String>,
    /// The tool's name for clients.
    pub tool: String,
    /// Its name within the plugin.
    pub name: String,
    /// Why it cannot be run again; empty if it can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingInput>,
    /// The arguments as the guest got them; `None` if they could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The limits, by their keys: sizes in bytes, and durations in milliseconds under `<key>_ms`.
    pub limits: BTreeMap<String, u64>,
    /// The most bytes that the result may have beyond `limits.output`, if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Whether clocks and random numbers follow from the arguments (`permissions.deterministic`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// Whether it could send HTTP requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http: bool,
    /// Whether it had mounted folders.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mounts: bool,
    /// The grant's temporary folder (`permissions.scratch`), if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Value>,
    /// The values of the grant's `[config]`, without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// The names of the grant's secrets: their values are redacted as `[secret:NAME]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What it could ask its caller, and what was answered before.
    #[serde(default, skip_serializing_if = "RecordedQuestions::is_empty")]
    pub asked: RecordedQuestions,
    /// What the host answered to the guest.
    pub answers: HostAnswers,
    /// What came of it.
    pub result: RecordedOutcome,
    /// What it used.
    pub usage: RecordedUsage,
}

/// What a call could ask its caller, and what was answered before.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedQuestions {
    /// The kinds of questions that the client can answer.
    pub kinds: Vec<QuestionKind>,
    /// How many times the call had asked before.
    pub rounds: u32,
    /// The client's results, JSON objects as text, by the keys of their questions.
    pub answers: BTreeMap<String, String>,
}

impl RecordedQuestions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedUsage {
    /// Instructions.
    pub fuel: u64,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Wall-clock time in nanoseconds.
    pub wall_ns: u64,
}

impl From<CallUsage> for RecordedUsage {
    fn from(usage: CallUsage) -> Self {
        let wall_ns = u64::try_from(usage.wall.as_nanos()).unwrap_or(u64::MAX);
        Self { fuel: usage.fuel, memory: usage.memory, wall_ns }
    }
}

impl RecordedCall {
    /// The limits of the call, clamped to `ceiling`, and whether one was lowered.
    ///
    /// # Errors
    ///
    /// A limit is unknown, or its value is none.
    pub fn limits(&self, ceiling: &Limits) -> Result<(Limits, bool), String> {
        let mut keys = Map::new();
        for (key, value) in &self.limits {
            let (key, value) = match key.strip_suffix("_ms") {
                Some(time) => (time, Value::from(format!("{value}ms"))),
                None => (key.as_str(), Value::from(*value)),
            };
            if keys.insert(key.to_owned(), value).is_some() {
                return Err(format!("limits: {key} is there twice"));
            }
        }
        let patch = serde_json::from_value::<LimitsPatch>(Value::Object(keys));
        let patch = patch.map_err(|error| format!("limits: {error}"))?;
        let (limits, clamps) = Limits::DEFAULT.with(&patch, ceiling);
        Ok((limits, !clamps.is_empty()))
    }

    /// The same without what makes it large and what came from outside: it can no longer be run again, because of this.
    #[must_use]
    pub fn bare(mut self, missing: MissingInput) -> Self {
        let HostAnswers { began, seed, .. } = self.answers;
        self.answers = HostAnswers { began, seed, ..HostAnswers::default() };
        self.arguments = None;
        self.config.clear();
        self.asked.answers.clear();
        self.result = self.result.digest();
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
        self
    }
}

/// What is recorded of an environment variable: SHA-256 of the recording's salt, its name and its value, in hexadecimal.
pub fn variable(salt: &str, name: &str, value: &str) -> String {
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

    /// A call of the tool `add`.
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
            result: RecordedOutcome::Value(serde_json::json!({"content": [{"type": "text", "text": "2"}]})),
            usage: RecordedUsage { fuel: 10, memory: 20, wall_ns: 30 },
        }
    }

    #[test]
    fn limits_are_the_same_after_they_were_written() {
        let (limits, lowered) = call(1).limits(&Limits::CEILING).unwrap();
        assert_eq!((limits, lowered), (Limits::DEFAULT, false));
        let mut other = call(1);
        other.limits.insert("fuel".to_owned(), u64::MAX);
        let (limits, lowered) = other.limits(&Limits::CEILING).unwrap();
        assert_eq!((limits.fuel, lowered), (Limits::CEILING.fuel, true));
        for (key, value) in [("petrol", 1), ("fuel", 0), ("timeout", 1), ("timeout_ms", u64::MAX)] {
            let mut wrong = call(1);
            wrong.limits.insert(key.to_owned(), value);
            assert!(wrong.limits(&Limits::CEILING).is_err(), "{key} = {value}");
        }
    }

    #[test]
    fn a_variable_is_known_again_and_tells_nothing() {
        let digest = variable("salt", "LANG", "C");
        assert_eq!(digest, variable("salt", "LANG", "C"));
        for other in [variable("salt", "LANGC", ""), variable("", "LANG", "C"), variable("salt", "LANG", "D")] {
            assert_ne!(digest, other);
        }
    }
}
