//! A trial of a tool: its form, and the outcome if the form was submitted.

use serde_json::Value;
use toolbay_model::{CallUsage, Digest};

use crate::form::{FieldValues, ToolForm};
use crate::operations::ConsoleOperations;
use crate::server_data::{ConsoleCallOutcome, ToolDetail};
use crate::sessions::ConsoleSession;

/// The form of a tool, its values, and its outcome.
#[derive(Debug)]
pub(crate) struct ToolTrial {
    pub(super) form: ToolForm,
    pub(super) values: FieldValues,
    pub(super) outcome: TrialOutcome,
}

/// The outcome of a form.
#[derive(Debug)]
pub(super) enum TrialOutcome {
    /// The form was not submitted.
    NotSubmitted,
    /// The form was created for another version of the tool.
    Outdated,
    /// These fields are invalid.
    InvalidFields(Vec<(String, String)>),
    /// A person must approve the call: the question, and its digest.
    Question(String, Digest),
    /// The call ended.
    Called {
        result: Result<Value, String>,
        outcome: &'static str,
        usage: Option<CallUsage>,
    },
}

impl ToolTrial {
    /// Creates a form that is not submitted yet. If `raw` is set, the form is a single JSON field.
    pub(crate) fn unsubmitted(tool: &ToolDetail, raw: bool) -> Self {
        let form = ToolForm::from_schema(&tool.input, raw);
        Self {
            values: form.defaults(),
            form,
            outcome: TrialOutcome::NotSubmitted,
        }
    }

    /// Calls the tool with the submitted values.
    pub(crate) async fn call(
        operations: &dyn ConsoleOperations,
        session: &ConsoleSession,
        tool: &ToolDetail,
        values: FieldValues,
    ) -> Self {
        let form = ToolForm::from_schema(&tool.input, values.contains_key("raw"));
        if values.get("schema") != Some(&form.digest.to_string()) {
            return Self {
                form,
                values,
                outcome: TrialOutcome::Outdated,
            };
        }
        let trial_outcome = match form.parse_arguments(&values) {
            Err(errors) => TrialOutcome::InvalidFields(errors),
            Ok(arguments) => {
                let approved = values
                    .get("allow")
                    .and_then(|digest| Digest::from_hex(digest));
                let call = operations.call_tool(
                    &session.viewer,
                    tool.row.name.clone(),
                    arguments,
                    approved,
                );
                match call.await {
                    ConsoleCallOutcome::Question(text, digest) => {
                        TrialOutcome::Question(text, digest)
                    }
                    ConsoleCallOutcome::Ended {
                        result,
                        outcome,
                        usage,
                    } => TrialOutcome::Called {
                        result,
                        outcome,
                        usage,
                    },
                }
            }
        };
        Self {
            form,
            values,
            outcome: trial_outcome,
        }
    }
}
