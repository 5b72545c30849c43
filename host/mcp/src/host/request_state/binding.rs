//! The request that a state is bound to: its caller, its method and its parameters.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::{CallRequest, CompletionReference, CompletionRequest};

/// A digest of a caller, a method and its parameters, without `_meta`, `inputResponses` and
/// `requestState`. Parameters that are equal as JSON values have the same digest, regardless of how
/// they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct RequestBinding([u8; 32]);

impl RequestBinding {
    /// Returns the binding of this request of the caller with this name.
    pub(crate) fn new(caller: &str, request: &CallRequest) -> Self {
        let mut hash = Sha256::new();
        hash_text(&mut hash, caller);
        match request {
            CallRequest::Tool { name, arguments } => {
                hash_text(&mut hash, "tools/call");
                hash_text(&mut hash, name);
                hash_object(&mut hash, arguments);
            }
            CallRequest::Prompt { name, arguments } => {
                hash_text(&mut hash, "prompts/get");
                hash_text(&mut hash, name);
                for (name, value) in arguments {
                    hash_text(&mut hash, name);
                    hash_text(&mut hash, value);
                }
            }
            CallRequest::Resource { uri } => {
                hash_text(&mut hash, "resources/read");
                hash_text(&mut hash, uri);
            }
            // A completion cannot ask questions (MCP allows questions only for the three methods
            // above), so no state has this binding.
            CallRequest::Completion(CompletionRequest {
                reference,
                argument,
                value,
                context: _,
            }) => {
                let (CompletionReference::Prompt(name) | CompletionReference::Resource(name)) =
                    reference;
                for part in ["completion/complete", name, argument, value] {
                    hash_text(&mut hash, part);
                }
            }
        }
        Self(hash.finalize().into())
    }
}

/// Hashes a text with its length, so that different lists of texts never hash the same bytes.
fn hash_text(hash: &mut Sha256, text: &str) {
    hash_length(hash, text.len());
    hash.update(text);
}

fn hash_length(hash: &mut Sha256, length: usize) {
    hash.update((length as u64).to_le_bytes());
}

fn hash_object(hash: &mut Sha256, members: &Map<String, Value>) {
    hash_length(hash, members.len());
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    for (name, member) in members {
        hash_text(hash, name);
        hash_value(hash, member);
    }
}

/// Hashes a value. The parser limits its depth.
fn hash_value(hash: &mut Sha256, json: &Value) {
    match json {
        Value::Null => hash.update(b"n"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Number(number) => {
            hash.update(b"0");
            hash_text(hash, &number.to_string());
        }
        Value::String(string) => {
            hash.update(b"\"");
            hash_text(hash, string);
        }
        Value::Array(items) => {
            hash.update(b"[");
            hash_length(hash, items.len());
            for item in items {
                hash_value(hash, item);
            }
        }
        Value::Object(members) => {
            hash.update(b"{");
            hash_object(hash, members);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use serde_json::json;

    use super::*;

    fn tool(name: &str, arguments: &Value) -> CallRequest {
        CallRequest::Tool {
            name: name.into(),
            arguments: arguments.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn different_requests_have_different_bindings() {
        let prompt = |pairs: &[(&str, &str)]| CallRequest::Prompt {
            name: "a".into(),
            arguments: pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect::<BTreeMap<_, _>>(),
        };
        let requests = [
            tool("a", &json!({})),
            tool("b", &json!({})),
            tool("a", &json!({"a": 1})),
            tool("a", &json!({"a": "1"})),
            tool("a", &json!({"a": [1]})),
            tool("a", &json!({"a": [[1]]})),
            tool("a", &json!({"a": {"b": 1}})),
            tool("a", &json!({"a": {}, "b": 1})),
            tool("a", &json!({"a": []})),
            tool("a", &json!({"a": [null]})),
            tool("a", &json!({"a": true})),
            tool("a", &json!({"a": false})),
            tool("a", &json!({"a": null})),
            tool("a", &json!({"ab": "c"})),
            tool("a", &json!({"a": "bc"})),
            tool("a", &json!({"a": ["b", "c"]})),
            tool("a", &json!({"a": ["bc"]})),
            prompt(&[]),
            prompt(&[("ab", "c")]),
            prompt(&[("a", "bc")]),
            prompt(&[("a", "b"), ("c", "d")]),
            CallRequest::Resource { uri: "a".into() },
        ];
        let mut seen = HashSet::new();
        for caller in ["stdio", "token:a"] {
            for request in &requests {
                assert!(
                    seen.insert(RequestBinding::new(caller, request).0),
                    "{caller}: {request:?}"
                );
            }
        }
    }

    #[test]
    fn equal_requests_have_the_same_binding() {
        let first = json!({"a": {"x": 1, "y": [true, null]}, "b": "é"});
        let second: Value =
            serde_json::from_str(r#"{ "b":"\u00e9", "a":{"y":[true,null],"x":1} }"#).unwrap();
        assert_eq!(
            RequestBinding::new("stdio", &tool("a", &first)),
            RequestBinding::new("stdio", &tool("a", &second))
        );
    }
}
