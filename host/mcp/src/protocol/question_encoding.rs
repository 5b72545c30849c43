//! Encodes a plugin's questions as the requests of each revision: `elicitation/create`,
//! `sampling/createMessage` and `roots/list`.

use serde_json::{Map, Value, json};
use toolbay_model::{Question, QuestionKind};

use crate::protocol::revision::Revision;

/// Number of random bytes in the id of an elicitation.
const ELICITATION_ID_BYTES: usize = 16;

/// Returns the parameters of the request that asks a question.
///
/// # Errors
///
/// The revision cannot express the question. The error is a message for the client.
pub(crate) fn request_params(
    question: &Question,
    revision: Revision,
) -> Result<Option<Map<String, Value>>, String> {
    let features = revision.features();
    // The sandbox has checked that this is an object.
    let mut params: Map<String, Value> =
        serde_json::from_str(question.params.get()).unwrap_or_default();
    match question.kind {
        QuestionKind::Form | QuestionKind::Url => {
            let mode = if question.kind == QuestionKind::Url {
                "url"
            } else {
                "form"
            };
            params.shift_remove("mode");
            params.shift_remove("elicitationId");
            if features.elicitation_modes {
                params.insert("mode".into(), mode.into());
            }
            if features.elicitation_ids && question.kind == QuestionKind::Url {
                params.insert("elicitationId".into(), elicitation_id()?.into());
            }
            if !features.rich_forms
                && let Some(schema) = params
                    .get_mut("requestedSchema")
                    .and_then(Value::as_object_mut)
            {
                downgrade_schema(schema, revision)?;
            }
        }
        QuestionKind::Sampling | QuestionKind::SamplingWithTools => {
            if let Some(messages) = params.get_mut("messages").and_then(Value::as_array_mut) {
                let old = std::mem::take(messages);
                messages.extend(
                    old.into_iter()
                        .flat_map(|message| downgrade_message(message, revision)),
                );
            }
        }
        // The method has no parameters.
        QuestionKind::Roots => return Ok(None),
    }
    Ok(Some(params))
}

/// Returns the entry of `inputRequests` that asks a question.
///
/// # Errors
///
/// Like [`request_params`].
pub(crate) fn input_request(question: &Question, revision: Revision) -> Result<Value, String> {
    let mut request = Map::from_iter([("method".to_owned(), question.kind.method().into())]);
    // Some clients reject a question without this member.
    request.insert(
        "params".into(),
        request_params(question, revision)?
            .unwrap_or_default()
            .into(),
    );
    Ok(request.into())
}

fn elicitation_id() -> Result<String, String> {
    let mut bytes = [0; ELICITATION_ID_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| "the system provides no random bytes".to_owned())?;
    Ok(hex::encode(bytes))
}

/// Rewrites the schema of a form for the first revision with forms: a choice has `enum` and
/// `enumNames`, and only booleans have a default.
fn downgrade_schema(schema: &mut Map<String, Value>, revision: Revision) -> Result<(), String> {
    schema.shift_remove("$schema");
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        if property.get("type").is_some_and(|kind| kind == "array") {
            return Err(format!(
                "a form cannot have a choice of several values, such as {name:?}, in MCP {revision}: use a client of \
                 2025-11-25 or later"
            ));
        }
        if property.get("type").is_none_or(|kind| kind != "boolean") {
            property.shift_remove("default");
        }
        if let Some(Value::Array(choices)) = property.shift_remove("oneOf") {
            let part = |key: &str, other: &str| {
                let parts = choices.iter().map(|choice| {
                    choice
                        .get(key)
                        .or(choice.get(other))
                        .cloned()
                        .unwrap_or_default()
                });
                parts.collect::<Vec<Value>>()
            };
            property.insert("enum".into(), part("const", "title").into());
            property.insert("enumNames".into(), part("title", "const").into());
        }
    }
    Ok(())
}

/// Splits and rewrites a message for the client's model into messages that the revision supports.
fn downgrade_message(mut message: Value, revision: Revision) -> Vec<Value> {
    let features = revision.features();
    let Some(content) = message.get_mut("content") else {
        return vec![message];
    };
    if !features.audio {
        let blocks = match &mut *content {
            Value::Array(blocks) => blocks.as_mut_slice(),
            block => std::slice::from_mut(block),
        };
        blocks.iter_mut().for_each(replace_audio);
    }
    if features.sampling_tools || !content.is_array() {
        return vec![message];
    }
    // Each block becomes a message of the same role.
    let Value::Array(blocks) = content.take() else {
        return vec![message];
    };
    let with_block = |block| {
        let mut single = message.clone();
        if let Some(content) = single.get_mut("content") {
            *content = block;
        }
        single
    };
    blocks.into_iter().map(with_block).collect()
}

/// Replaces an audio block with a text block that describes it.
fn replace_audio(block: &mut Value) {
    if block.get("type").is_some_and(|kind| kind == "audio") {
        let kind = block
            .get("mimeType")
            .and_then(Value::as_str)
            .unwrap_or("of an unknown type");
        *block = json!({"type": "text", "text": format!("[audio, {kind}]")});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::revision_changes::revision_changes;

    fn question(kind: QuestionKind, params: Value) -> Question {
        Question {
            key: "k".into(),
            kind,
            params: params.into(),
        }
    }

    #[test]
    fn each_question_in_each_revision() {
        let form = json!({"message": "Which?", "requestedSchema": {"$schema": "x", "type": "object", "properties": {
            "name": {"type": "string", "title": "Name", "minLength": 1, "default": "Ada"},
            "sure": {"type": "boolean", "default": true},
            "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}], "default": "a"},
            "old": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
        }, "required": ["name"]}});
        let url = json!({"mode": "odd", "message": "Sign in", "url": "https://a.example/", "elicitationId": "own"});
        let sampling = json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "1"}, {"type": "audio", "data": "", "mimeType": "audio/wav"}]},
            {"role": "assistant", "content": {"type": "audio", "data": "", "mimeType": "audio/ogg"}},
        ], "maxTokens": 10});
        let questions = [
            question(QuestionKind::Form, form),
            question(QuestionKind::Url, url),
            question(QuestionKind::Sampling, sampling),
            question(QuestionKind::Roots, json!({"ignored": 1})),
        ];
        let requests = questions.map(|question| {
            revision_changes(Revision::ALL.map(|revision| {
                let mut request = input_request(&question, revision).unwrap();
                if let Some(id) = request
                    .get_mut("params")
                    .and_then(|params| params.get_mut("elicitationId"))
                {
                    assert_eq!(id.as_str().unwrap().len(), 32);
                    *id = "ID".into();
                }
                (revision, request)
            }))
        });
        insta::assert_snapshot!(requests.join("\n"));
    }

    #[test]
    fn a_form_that_a_revision_cannot_express_is_not_sent() {
        let several = json!({"message": "", "requestedSchema": {"type": "object", "properties": {
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        }}});
        let question = question(QuestionKind::Form, several);
        for revision in Revision::ALL {
            let sent = request_params(&question, revision);
            assert_eq!(
                sent.is_ok(),
                revision >= Revision::V2025_11_25,
                "{revision}: {sent:?}"
            );
        }
    }
}
