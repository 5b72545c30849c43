//! `inputResponses` and `requestState`: the answers that a client sends with a request (MCP
//! 2026-07-28, "Multi Round-Trip Requests").

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::protocol::json_memory;
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS};
use crate::protocol::params::read_with_meta;

/// Maximum number of answers in one request.
const MAX_ANSWERS: usize = 64;

/// Maximum size of the key of an answer, in bytes: that of the longest key of a question. Answers
/// with longer keys are ignored.
const MAX_ANSWER_KEY_BYTES: usize = 64;

/// Maximum size of all answers of one request, in bytes, as text and as decoded values: the largest
/// journal that an operator can allow.
const MAX_ANSWERS_BYTES: usize = 1 << 20;
const MAX_DECODED_ANSWERS_BYTES: usize = 8 << 20;

/// The members that a client adds to the parameters of a retried request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RetryInput {
    /// The answers by the keys of their questions. Each answer is a JSON object, as text.
    pub(crate) responses: BTreeMap<String, String>,
    /// The state that came with the questions.
    pub(crate) state: Option<Box<str>>,
}

#[derive(Deserialize)]
struct RetryParams<'a> {
    #[serde(
        rename = "inputResponses",
        borrow,
        default,
        deserialize_with = "present"
    )]
    responses: Option<&'a RawValue>,
    #[serde(rename = "requestState", borrow, default, deserialize_with = "present")]
    state: Option<&'a RawValue>,
}

/// Distinguishes `null`, which is an error, from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer)
        .map(Some)
        .map_err(D::Error::custom)
}

impl RetryInput {
    /// Reads these members from the parameters of a request.
    ///
    /// # Errors
    ///
    /// A member is malformed.
    pub(crate) fn read(params: Option<&RawValue>) -> Result<Self, Error> {
        // Most requests have neither: searching the text avoids parsing it again.
        let contains = |params: &&RawValue| {
            ["inputResponses", "requestState"]
                .iter()
                .any(|name| params.get().contains(name))
        };
        let Some(params) = params.filter(contains) else {
            return Ok(Self::default());
        };
        let RetryParams { responses, state } = read_with_meta(Some(params))?;
        let responses = responses
            .map(parse_answers)
            .transpose()?
            .unwrap_or_default();
        let invalid = || {
            Error::new(
                INVALID_PARAMS,
                "requestState must be the string that the server sent",
            )
        };
        let state = state
            .map(|state| serde_json::from_str(state.get()).map_err(|_| invalid()))
            .transpose()?;
        Ok(Self { responses, state })
    }
}

/// Parses the answers. An answer that is not an object is ignored, so its question is asked again.
fn parse_answers(raw: &RawValue) -> Result<BTreeMap<String, String>, Error> {
    let invalid = |what: &str| Error::new(INVALID_PARAMS, what);
    let text = raw.get();
    if !text.starts_with('{') {
        return Err(invalid("inputResponses must be an object"));
    }
    if text.len() > MAX_ANSWERS_BYTES || json_memory::decoded_size(text) > MAX_DECODED_ANSWERS_BYTES
    {
        return Err(invalid(
            "inputResponses is larger than 1 MiB as text, or than 8 MiB in memory",
        ));
    }
    let read: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| invalid("inputResponses must be an object"))?;
    let mut answers = BTreeMap::new();
    for (key, answer) in read {
        if key.len() <= MAX_ANSWER_KEY_BYTES && answer.get().starts_with('{') {
            answers.insert(key, answer.get().to_owned());
        }
    }
    if answers.len() > MAX_ANSWERS {
        return Err(invalid("inputResponses has more than 64 answers"));
    }
    Ok(answers)
}

#[cfg(test)]
mod parsing {
    use serde_json::{Value, json};

    use super::*;

    fn retry(params: &Value) -> Result<RetryInput, Error> {
        RetryInput::read(Some(&RawValue::from_string(params.to_string()).unwrap()))
    }

    #[test]
    fn answers_are_read_and_other_values_are_ignored() {
        assert_eq!(RetryInput::read(None).unwrap(), RetryInput::default());
        assert_eq!(
            retry(&json!({"name": "a", "arguments": {"b": 1}})).unwrap(),
            RetryInput::default()
        );
        let full = retry(&json!({"inputResponses": {
            "a": {"action": "accept"}, "b": 12345, "c": null, "d": [{}], "e": "text", "x".repeat(65): {},
        }, "requestState": "v1"}));
        let full = full.unwrap();
        assert_eq!(
            full.responses,
            BTreeMap::from([("a".to_owned(), r#"{"action":"accept"}"#.to_owned())])
        );
        assert_eq!(full.state.as_deref(), Some("v1"));
        // Within arguments, these names have no meaning.
        let inside = json!({"arguments": {"inputResponses": null, "requestState": 7}});
        assert_eq!(retry(&inside).unwrap(), RetryInput::default());
    }

    #[test]
    fn what_is_malformed_is_rejected() {
        let many: serde_json::Map<String, Value> =
            (0..65).map(|n| (n.to_string(), json!({}))).collect();
        let heavy = json!({"a": {"b": vec![json!([0]); 100_000]}});
        let long = json!({"a": {"b": "x".repeat(1 << 20)}});
        let cases = [
            (
                json!({"inputResponses": null}),
                "inputResponses must be an object",
            ),
            (
                json!({"inputResponses": []}),
                "inputResponses must be an object",
            ),
            (
                json!({"inputResponses": "a"}),
                "inputResponses must be an object",
            ),
            (
                json!({"inputResponses": many}),
                "inputResponses has more than 64 answers",
            ),
            (
                json!({"inputResponses": heavy}),
                "inputResponses is larger than 1 MiB as text, or than 8 MiB in memory",
            ),
            (
                json!({"inputResponses": long}),
                "inputResponses is larger than 1 MiB as text, or than 8 MiB in memory",
            ),
            (
                json!({"requestState": null}),
                "requestState must be the string that the server sent",
            ),
            (
                json!({"requestState": {"a": 1}}),
                "requestState must be the string that the server sent",
            ),
        ];
        for (params, what) in cases {
            let error = retry(&params).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (INVALID_PARAMS, what));
        }
    }
}
