//! Whoever sits before the client, with a model and a folder.

use std::sync::Mutex;

use rmcp::model::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ListRootsResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub(crate) struct Person {
    /// What it does with forms and pages.
    action: Mutex<ElicitationAction>,
    /// What it was asked.
    asked: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn new() -> Self {
        Self {
            action: Mutex::new(ElicitationAction::Accept),
            asked: Mutex::default(),
        }
    }

    /// What it can be asked.
    pub(crate) fn capabilities() -> ClientCapabilities {
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        wire(json!({
            "elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}, "extensions": extensions,
        }))
    }

    /// From now on it does this with forms and pages.
    pub(crate) fn will(&self, action: ElicitationAction) {
        *self.action.lock().unwrap() = action;
    }

    /// What it was asked since this was called before.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn hear(&self, question: String) {
        self.asked.lock().unwrap().push(question);
    }

    pub(crate) fn elicit(&self, question: ElicitRequestParams) -> ElicitResult {
        let action = self.action.lock().unwrap().clone();
        let accepted = action == ElicitationAction::Accept;
        let result = ElicitResult::new(action);
        match question {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                self.hear(message);
                let fields = requested_schema.properties.keys();
                let content: Map<String, Value> = fields
                    .map(|name| (name.clone(), format!("my {name}").into()))
                    .collect();
                if accepted {
                    result.with_content(content.into())
                } else {
                    result
                }
            }
            ElicitRequestParams::UrlElicitationParams { url, .. } => {
                self.hear(url);
                result
            }
            _ => ElicitResult::new(ElicitationAction::Decline),
        }
    }

    pub(crate) fn sample(&self, question: &CreateMessageRequestParams) -> CreateMessageResult {
        let message = json!(question.messages[0]);
        let text = message["content"]
            .get("text")
            .or_else(|| message["content"][0].get("text"));
        self.hear(format!(
            "{} ({})",
            text.and_then(Value::as_str).unwrap_or_default(),
            question.max_tokens
        ));
        let content = json!({"type": "text", "text": "Paris."});
        wire(
            json!({"role": "assistant", "model": "none", "content": content, "stopReason": "endTurn"}),
        )
    }

    pub(crate) fn roots(&self) -> ListRootsResult {
        self.hear("roots".to_owned());
        wire(json!({"roots": [{"uri": "file:///home/ada", "name": "home"}]}))
    }
}

/// What MCP writes like this.
fn wire<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
