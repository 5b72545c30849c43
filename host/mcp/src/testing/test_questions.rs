//! Questions and results of the plugins in tests.

use serde_json::{Value, json};
use toolbay_model::{CallReply, ContentBlock, ContentBody, Question, QuestionKind, ToolOutput};

/// Returns every capability that a client can declare for questions.
pub(crate) fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// Returns a question of this kind, with valid parameters.
pub(crate) fn question(key: &str, kind: QuestionKind) -> Question {
    let params = match kind {
        QuestionKind::Form => json!({"message": "Name?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string", "default": "Ada"}},
        }}),
        QuestionKind::Url => json!({"message": "Sign in", "url": "https://a.example/"}),
        QuestionKind::Sampling | QuestionKind::SamplingWithTools => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5})
        }
        QuestionKind::Roots => json!({}),
    };
    Question {
        key: key.into(),
        kind,
        params: params.into(),
    }
}

/// Returns a tool result with this text.
pub(crate) fn text_reply(text: &str) -> CallReply {
    let body = ContentBody::Text(text.to_owned());
    let content = vec![ContentBlock {
        body,
        audience: vec![],
        priority: None,
        last_modified: None,
    }];
    CallReply::Tool(ToolOutput {
        content,
        ..ToolOutput::default()
    })
}
