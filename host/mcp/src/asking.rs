//! What plugins of tests ask and say.

use serde_json::{Value, json};
use toolbay_model::{CallReply, ContentBlock, ContentBody, Question, QuestionKind, ToolOutput};

/// Everything that a client can declare about questions.
pub(crate) fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// A question of this kind, with parameters that fit.
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
    Question { key: key.into(), kind, params: params.into() }
}

/// The result of a tool.
pub(crate) fn said(text: &str) -> CallReply {
    let body = ContentBody::Text(text.to_owned());
    let content = vec![ContentBlock { body, audience: vec![], priority: None, last_modified: None }];
    CallReply::Tool(ToolOutput { content, ..ToolOutput::default() })
}
