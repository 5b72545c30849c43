//! A call that was made with a form, or was not yet.

use serde_json::Value;
use toolbay_model::{Digest, Usage};

use crate::data::{Called, ToolDetail};
use crate::form::{Filled, Form};
use crate::operations::Operations;
use crate::sessions::Session;

/// The form of a tool, what is filled in, and what came of it.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(super) form: Form,
    pub(super) filled: Filled,
    pub(super) ended: Ended,
}

/// What came of a form.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was not sent.
    Not,
    /// It belongs to another version of the tool.
    Outdated,
    /// These fields cannot be read.
    Wrong(Vec<(String, String)>),
    /// A person must allow the call: the question, and its digest.
    Question(String, Digest),
    /// The call ended.
    Called { result: Result<Value, String>, outcome: &'static str, usage: Option<Usage> },
}

impl Tried {
    /// The form, not sent yet; as one field for JSON if it is `raw`.
    pub(crate) fn not(tool: &ToolDetail, raw: bool) -> Self {
        let form = Form::of(&tool.input, raw);
        Self { filled: form.defaults(), form, ended: Ended::Not }
    }

    /// Calls the tool with what was filled in.
    pub(crate) async fn call(
        operations: &dyn Operations,
        session: &Session,
        tool: &ToolDetail,
        filled: Filled,
    ) -> Self {
        let form = Form::of(&tool.input, filled.contains_key("raw"));
        if filled.get("schema") != Some(&form.digest.to_string()) {
            return Self { form, filled, ended: Ended::Outdated };
        }
        let ended = match form.arguments(&filled) {
            Err(wrong) => Ended::Wrong(wrong),
            Ok(arguments) => {
                let allowed = filled.get("allow").and_then(|digest| parsed(digest));
                let call = operations.call(&session.viewer, tool.row.name.clone(), arguments, allowed);
                match call.await {
                    Called::Question(text, digest) => Ended::Question(text, digest),
                    Called::Ended { result, outcome, usage } => Ended::Called { result, outcome, usage },
                }
            }
        };
        Self { form, filled, ended }
    }
}

fn parsed(text: &str) -> Option<Digest> {
    let bytes: [u8; 32] = hex::decode(text).ok()?.try_into().ok()?;
    Some(Digest::new(bytes))
}
