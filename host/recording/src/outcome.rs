//! Outcome of a call, as JSON that is independent of the protocol revision.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolbay_model::{
    CallError, CallReply, ContentBlock, ContentBody, EmbeddedResource, MediaContent,
    ResourceContent,
};

/// Outcome of a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedOutcome {
    /// Complete outcome.
    Value(Value),
    /// SHA-256 of the outcome's JSON, in hexadecimal, if the outcome was too large.
    Sha256(String),
}

impl RecordedOutcome {
    /// Converts the outcome to its digest.
    #[must_use]
    pub fn into_digest(self) -> Self {
        match self {
            Self::Value(value) => Self::Sha256(hash(value.to_string().as_bytes())),
            digest @ Self::Sha256(_) => digest,
        }
    }

    /// Returns whether the outcome equals `value`.
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Value(recorded) => recorded == value,
            Self::Sha256(_) => *self == Self::Value(value.clone()).into_digest(),
        }
    }
}

/// Returns the result of a call that failed with this error.
pub fn error_result(error: &CallError) -> Value {
    json!({"error": error.kind().as_str(), "message": error.to_string()})
}

/// Returns the result of a call that ended with this reply. Binary content is replaced by its
/// digest.
pub fn reply_result(reply: &CallReply) -> Value {
    match reply {
        CallReply::Tool(output) => {
            let mut result = Map::new();
            result.insert(
                "content".to_owned(),
                output.content.iter().map(block_json).collect(),
            );
            if let Some(structured) = &output.structured {
                result.insert("structured".to_owned(), structured.clone());
            }
            if !output.meta.is_empty() {
                result.insert("meta".to_owned(), output.meta.clone().into());
            }
            Value::Object(result)
        }
        CallReply::Questions(round) => {
            let question = |question: &toolbay_model::Question| {
                let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
                json!({"key": question.key, "method": question.kind.method(), "params": params})
            };
            json!({"questions": round.questions.iter().map(question).collect::<Vec<_>>()})
        }
        // Tools do not return these.
        CallReply::Prompt(_) | CallReply::Resource(_) | CallReply::Completion(_) => Value::Null,
    }
}

fn block_json(content: &ContentBlock) -> Value {
    let ContentBlock {
        body,
        audience,
        priority,
        last_modified,
    } = content;
    let mut block = match body {
        ContentBody::Text(text) => json!({"type": "text", "text": text}),
        ContentBody::Image(media) => self::media_json("image", media),
        ContentBody::Audio(media) => self::media_json("audio", media),
        ContentBody::ResourceLink(link) => json!({
            "type": "resource-link", "uri": link.uri, "name": link.name, "title": link.title,
            "description": link.description, "mime_type": link.mime_type, "size": link.size,
        }),
        ContentBody::Resource(resource) => self::resource_json(resource),
    };
    if let Some(members) = block.as_object_mut() {
        let optional_members = [
            ("audience", (!audience.is_empty()).then(|| json!(audience))),
            ("priority", priority.map(Value::from)),
            ("last_modified", last_modified.clone().map(Value::from)),
        ];
        members.retain(|_, value| !value.is_null());
        members.extend(
            optional_members
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
    }
    block
}

fn media_json(kind: &str, media: &MediaContent) -> Value {
    json!({"type": kind, "mime_type": media.mime_type, "bytes": media.data.len(), "sha256": hash(&media.data)})
}

fn resource_json(resource: &EmbeddedResource) -> Value {
    let EmbeddedResource {
        uri,
        mime_type,
        content,
    } = resource;
    match content {
        ResourceContent::Text(text) => {
            json!({"type": "resource", "uri": uri, "mime_type": mime_type, "text": text})
        }
        ResourceContent::Blob(bytes) => json!({
            "type": "resource", "uri": uri, "mime_type": mime_type, "bytes": bytes.len(), "sha256": hash(bytes),
        }),
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use toolbay_model::{Limit, ToolOutput};

    use super::*;

    #[test]
    fn a_result_is_what_the_tool_returned_and_bytes_are_a_digest() {
        let content = |body| ContentBlock {
            body,
            audience: vec!["user"],
            priority: None,
            last_modified: None,
        };
        let image = MediaContent {
            data: vec![1, 2, 3].into(),
            mime_type: "image/png".to_owned(),
        };
        let output = ToolOutput {
            content: vec![
                content(ContentBody::Text("a".to_owned())),
                content(ContentBody::Image(image)),
            ],
            structured: Some(json!({"sum": 3})),
            meta: Map::new(),
        };
        assert_eq!(
            reply_result(&CallReply::Tool(output)),
            json!({
                "content": [
                    {"type": "text", "text": "a", "audience": ["user"]},
                    {
                        "type": "image", "mime_type": "image/png", "bytes": 3,
                        "sha256": "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81", "audience": ["user"],
                    },
                ],
                "structured": {"sum": 3},
            })
        );
    }

    #[test]
    fn failure_has_kind_and_message_and_large_results_have_a_digest() {
        let value = error_result(&CallError::limit(Limit::Fuel(5)));
        assert_eq!(value["error"], "fuel");
        let digest = RecordedOutcome::Value(value.clone()).into_digest();
        assert!(digest.matches(&value) && RecordedOutcome::Value(value.clone()).matches(&value));
        assert!(!digest.matches(&Value::Null) && digest.clone().into_digest() == digest);
    }
}
