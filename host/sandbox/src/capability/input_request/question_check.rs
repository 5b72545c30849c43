//! Checks of questions.

use std::collections::BTreeSet;

use serde_json::Value;
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{JsonSize, JsonText, Question, QuestionKind, is_reserved_meta};
use toolbay_secrets::SecretFilter;

use super::form;
use super::page_url::check_url;
use super::raw_question::{RawQuestion, RawQuestionKind};

/// Maximum number of questions in one request.
const MAX_QUESTIONS: usize = 16;

/// Maximum size of a question's key, in bytes.
const MAX_KEY_BYTES: usize = 64;

/// Maximum size of a question's parameters, in bytes.
pub(super) const MAX_PARAMS_BYTES: usize = 64 << 10;

/// Maximum number of JSON values in the parameters of a question.
const MAX_PARAM_VALUES: u64 = 4_000;

/// The member of the parameters that requests a task instead of an answer (MCP 2025-11-25).
const TASK_MEMBER: &str = "task";

/// The member to which clients and servers can attach metadata.
const META_MEMBER: &str = "_meta";

/// Maximum size of a quotation in a message about a question, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Checks the questions.
///
/// # Errors
///
/// The problem with a question, worded for the plugin's author.
pub(super) fn check_questions(
    raw_questions: &[RawQuestion],
    secrets: &SecretFilter,
) -> Result<Vec<Question>, String> {
    if raw_questions.len() > MAX_QUESTIONS {
        return Err(format!(
            "at most {MAX_QUESTIONS} questions can be asked at once, not {}",
            raw_questions.len()
        ));
    }
    let mut keys = BTreeSet::new();
    raw_questions
        .iter()
        .map(|raw| {
            let key = &raw.key;
            let with_key =
                |why: String| format!("question {:?}: {why}", clean_line(key, MAX_QUOTED_BYTES));
            if !is_valid_key(key) {
                return Err(with_key(format!(
                    "a key has 1 to {MAX_KEY_BYTES} characters of A-Z a-z 0-9 _ - ."
                )));
            }
            if secrets.scrub(key) != key.as_str() {
                return Err("a question's key contains a secret".to_owned());
            }
            if !keys.insert(key) {
                return Err(with_key("another question has the same key".to_owned()));
            }
            check_question(raw, secrets).map_err(with_key)
        })
        .collect()
}

fn check_question(raw: &RawQuestion, secrets: &SecretFilter) -> Result<Question, String> {
    if raw.params.len() > MAX_PARAMS_BYTES
        || JsonSize::measure(&raw.params).values > MAX_PARAM_VALUES
    {
        return Err(format!(
            "its parameters are larger than {} KiB or {MAX_PARAM_VALUES} values",
            MAX_PARAMS_BYTES >> 10
        ));
    }
    let Ok(mut params @ Value::Object(_)) = serde_json::from_str(&raw.params) else {
        return Err("its parameters are not a JSON object".to_owned());
    };
    clean_value(&mut params, secrets);
    if let Some(params) = params.as_object_mut() {
        // Task support is negotiated between the client and the server.
        params.shift_remove(TASK_MEMBER);
    }
    let kind = match raw.kind {
        RawQuestionKind::Form => form::check_form(&params).map(|()| QuestionKind::Form)?,
        RawQuestionKind::Url => check_url(&params).map(|()| QuestionKind::Url)?,
        RawQuestionKind::Sampling => check_sampling(&params)?,
        RawQuestionKind::Roots => QuestionKind::Roots,
    };
    Ok(Question {
        key: raw.key.clone(),
        kind,
        params: JsonText::new(&params),
    })
}

/// Removes control characters and secrets from every text, and reserved keys from every
/// `_meta`.
fn clean_value(value: &mut Value, secrets: &SecretFilter) {
    let clean_text = |text: &str| secrets.scrub(&clean(text)).into_owned();
    match value {
        Value::String(words) => *words = clean_text(words),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, secrets)),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(name, mut member)| {
                    clean_value(&mut member, secrets);
                    let name = clean_text(&name);
                    if name == META_MEMBER
                        && let Some(meta) = member.as_object_mut()
                    {
                        meta.retain(|key, _| !is_reserved_meta(key));
                    }
                    (name, member)
                })
                .collect();
        }
        _ => {}
    }
}

fn is_valid_key(key: &str) -> bool {
    key.len() <= MAX_KEY_BYTES && toolbay_model::is_name(key)
}

fn check_sampling(params: &Value) -> Result<QuestionKind, String> {
    let messages = params.get("messages").and_then(Value::as_array);
    let is_message = |message: &Value| {
        let role = message.get("role").and_then(Value::as_str);
        matches!(role, Some("user" | "assistant")) && message.get("content").is_some()
    };
    if !messages.is_some_and(|messages| !messages.is_empty() && messages.iter().all(is_message)) {
        return Err(
            "`messages` must be a list of messages, each with a role (user or assistant) and content".to_owned()
        );
    }
    if params
        .get("maxTokens")
        .and_then(Value::as_u64)
        .is_none_or(|tokens| tokens == 0)
    {
        return Err("`maxTokens` must be a whole number above 0".to_owned());
    }
    match params.get("tools") {
        None => Ok(QuestionKind::Sampling),
        Some(Value::Array(_)) => Ok(QuestionKind::SamplingWithTools),
        Some(_) => Err("`tools` must be a list".to_owned()),
    }
}
