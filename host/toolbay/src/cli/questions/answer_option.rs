//! `--answer KEY=ANSWER`: an answer of the command line.

use std::str::FromStr;

use serde_json::{Value, json};
use toolbay_model::QuestionKind;

/// An answer of the command line.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct AnswerOption {
    /// The key of the question.
    pub(super) key: String,
    value: AnswerValue,
}

#[derive(Clone, Debug, PartialEq)]
enum AnswerValue {
    Accept,
    Decline,
    Cancel,
    Json(Value),
}

impl FromStr for AnswerOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected KEY=ANSWER, such as sure={\"sure\":true} or sure=decline";
        let (key, answer) = text.split_once('=').ok_or(expected)?;
        if key.is_empty() {
            return Err(expected.to_owned());
        }
        let value = match answer.trim() {
            "accept" => AnswerValue::Accept,
            "decline" => AnswerValue::Decline,
            "cancel" => AnswerValue::Cancel,
            json => AnswerValue::Json(serde_json::from_str(json).map_err(|error| {
                format!("the answer is neither JSON nor accept, decline or cancel: {error}")
            })?),
        };
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }
}

impl AnswerOption {
    /// Returns the answer in the form in which a client sends it.
    ///
    /// # Errors
    ///
    /// The answer is not one to a question of this kind.
    pub(super) fn to_client_result(&self, kind: QuestionKind) -> Result<String, String> {
        let result = match (kind, &self.value) {
            (QuestionKind::Form | QuestionKind::Url, AnswerValue::Decline) => {
                json!({"action": "decline"})
            }
            (QuestionKind::Form | QuestionKind::Url, AnswerValue::Cancel) => {
                json!({"action": "cancel"})
            }
            (QuestionKind::Form, AnswerValue::Json(content @ Value::Object(_))) => {
                json!({"action": "accept", "content": content})
            }
            (QuestionKind::Form, _) => {
                return Err(
                    "the question is a form: give an object with its fields, decline or cancel"
                        .to_owned(),
                );
            }
            (QuestionKind::Url, AnswerValue::Accept) => json!({"action": "accept"}),
            (QuestionKind::Url, AnswerValue::Json(_)) => {
                return Err(
                    "the question is a page to open: give accept, decline or cancel".to_owned(),
                );
            }
            (
                QuestionKind::Sampling | QuestionKind::SamplingWithTools,
                AnswerValue::Json(Value::String(text)),
            ) => sampled_text(text),
            (
                QuestionKind::Sampling | QuestionKind::SamplingWithTools,
                AnswerValue::Json(result @ Value::Object(_)),
            ) => result.clone(),
            (QuestionKind::Roots, AnswerValue::Json(Value::Array(roots))) => roots_result(roots),
            (_, AnswerValue::Decline | AnswerValue::Cancel) => {
                return Err("the question was not answered, which ends the call".to_owned());
            }
            (QuestionKind::Roots, _) => {
                return Err(
                    "the question is for folders: give a list of URIs, such as [\"file:///home/ada\"]"
                        .to_owned(),
                );
            }
            (QuestionKind::Sampling | QuestionKind::SamplingWithTools, _) => {
                return Err(
                    "the question is for the client's model: give its text as a JSON string, or a complete result"
                        .to_owned(),
                );
            }
        };
        Ok(result.to_string())
    }
}

/// Returns the result of a client whose model wrote this text.
pub(super) fn sampled_text(text: &str) -> Value {
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "toolbay-terminal",
        "stopReason": "endTurn",
    })
}

/// Returns the result of a client with these folders: URIs, or objects as MCP defines them.
pub(super) fn roots_result(roots: &[Value]) -> Value {
    let roots: Vec<Value> = roots
        .iter()
        .map(|root| match root {
            Value::String(uri) => json!({"uri": uri}),
            other => other.clone(),
        })
        .collect();
    json!({"roots": roots})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(option: &str, kind: QuestionKind) -> Result<String, String> {
        option.parse::<AnswerOption>()?.to_client_result(kind)
    }

    #[test]
    fn each_kind_of_question_has_its_answers() {
        use QuestionKind::{Form, Roots, Sampling, Url};
        for (option, kind, expected) in [
            (
                r#"a={"b": "=c"}"#,
                Form,
                r#"{"action":"accept","content":{"b":"=c"}}"#,
            ),
            ("a=decline", Form, r#"{"action":"decline"}"#),
            ("a= cancel", Form, r#"{"action":"cancel"}"#),
            ("a=accept", Url, r#"{"action":"accept"}"#),
            ("a=decline", Url, r#"{"action":"decline"}"#),
            (
                r#"a="hi""#,
                Sampling,
                r#"{"role":"assistant","content":{"type":"text","text":"hi"},"model":"toolbay-terminal","stopReason":"endTurn"}"#,
            ),
            (r#"a={"content":[]}"#, Sampling, r#"{"content":[]}"#),
            (
                r#"a=["file:///a",{"uri":"file:///b","name":"b"}]"#,
                Roots,
                r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///b","name":"b"}]}"#,
            ),
        ] {
            assert_eq!(result(option, kind).as_deref(), Ok(expected), "{option}");
        }
    }

    #[test]
    fn other_answers_are_refused_with_what_to_give() {
        use QuestionKind::{Form, Roots, Sampling, SamplingWithTools, Url};
        let cases = [
            ("a", Form),
            ("=1", Form),
            ("a=yes", Form),
            ("a=true", Form),
            ("a=accept", Form),
            ("a={}", Url),
            ("a=7", Sampling),
            ("a=accept", SamplingWithTools),
            ("a=decline", Sampling),
            ("a=cancel", Roots),
            ("a=\"file:///a\"", Roots),
        ];
        let messages =
            cases.map(|(option, kind)| format!("{option}: {}", result(option, kind).unwrap_err()));
        insta::assert_snapshot!(messages.join("\n"), @r#"
        a: expected KEY=ANSWER, such as sure={"sure":true} or sure=decline
        =1: expected KEY=ANSWER, such as sure={"sure":true} or sure=decline
        a=yes: the answer is neither JSON nor accept, decline or cancel: expected value at line 1 column 1
        a=true: the question is a form: give an object with its fields, decline or cancel
        a=accept: the question is a form: give an object with its fields, decline or cancel
        a={}: the question is a page to open: give accept, decline or cancel
        a=7: the question is for the client's model: give its text as a JSON string, or a complete result
        a=accept: the question is for the client's model: give its text as a JSON string, or a complete result
        a=decline: the question was not answered, which ends the call
        a=cancel: the question was not answered, which ends the call
        a="file:///a": the question is for folders: give a list of URIs, such as ["file:///home/ada"]
        "#);
    }
}
