//! What a plugin said when it was asked for its tools.

use toolbay_model::ToolDefinition;

/// What a plugin said when it was asked for its tools, neither checked nor cleaned. A component that has no list of its
/// own said nothing: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct Listed(pub(crate) Vec<ToolDefinition>);
