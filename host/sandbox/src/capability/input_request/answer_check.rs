//! Checks of answers.

use serde_json::Value;
use toolbay_model::text::clean;
use toolbay_model::{Question, QuestionKind};

use super::form;

/// Returns the answer if it is valid for this question. Otherwise, the question is asked again with
/// the reason.
pub(super) fn check_answer(question: &Question, answer: &str) -> Result<String, String> {
    let Ok(answer @ Value::Object(_)) = serde_json::from_str(answer) else {
        return Err("it is not a JSON object".to_owned());
    };
    let answer = match question.kind {
        QuestionKind::Form => form::check_answer(&question.params, answer)?,
        QuestionKind::Url if form::parse_action(&answer).is_none() => {
            return Err("it has no `action` that is accept, decline or cancel".to_owned());
        }
        QuestionKind::Sampling | QuestionKind::SamplingWithTools
            if answer.get("content").is_none() =>
        {
            return Err("it has no `content`".to_owned());
        }
        QuestionKind::Roots if !answer.get("roots").is_some_and(Value::is_array) => {
            return Err("it has no list of `roots`".to_owned());
        }
        _ => answer,
    };
    Ok(clean_answer(answer).to_string())
}

/// Removes control characters from a client's result.
fn clean_answer(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(clean_answer).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (clean(&name).into_owned(), clean_answer(member)))
            .collect(),
        value => value,
    }
}
