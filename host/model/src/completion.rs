//! Completion: possible values of an argument of a prompt or of a resource template.

use std::collections::BTreeMap;

/// A request to complete an argument that a user is typing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt or resource that has the argument.
    pub reference: CompletionReference,
    /// The name of the argument.
    pub argument: String,
    /// The text that the user has typed so far.
    pub value: String,
    /// The arguments that are already complete, by name.
    pub context: BTreeMap<String, String>,
}

/// The prompt or resource whose argument is completed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompletionReference {
    /// The prompt with this name.
    Prompt(String),
    /// The resource template, or the resource, with this URI.
    Resource(String),
}

/// Possible values of an argument, checked and sanitized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionResult {
    /// At most [`CompletionResult::MAX_VALUES`] values, best first.
    pub values: Vec<String>,
    /// The total number of values, if it is known.
    pub total: Option<u32>,
    /// True if there are more values than `values` contains.
    pub has_more: bool,
}

impl CompletionResult {
    /// Maximum number of values that MCP allows (`CompleteResult`).
    pub const MAX_VALUES: usize = 100;
}
