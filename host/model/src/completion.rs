//! Completion: values that an argument of a prompt or of a resource template could have.

use std::collections::BTreeMap;

/// An argument that a user is typing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// What has the argument.
    pub reference: CompletionReference,
    /// The name of the argument.
    pub argument: String,
    /// What the user has typed so far.
    pub value: String,
    /// The arguments that are complete, by name.
    pub context: BTreeMap<String, String>,
}

/// What has an argument to complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompletionReference {
    /// The prompt with this name.
    Prompt(String),
    /// The resource template, or the resource, with this URI.
    Resource(String),
}

/// Values that an argument could have, already checked and cleaned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionResult {
    /// At most [`CompletionResult::MOST`] values, best first.
    pub values: Vec<String>,
    /// How many there are in all, if it is known.
    pub total: Option<u32>,
    /// Whether there are more than `values`.
    pub has_more: bool,
}

impl CompletionResult {
    /// The most values that MCP allows (`CompleteResult`).
    pub const MOST: usize = 100;
}
