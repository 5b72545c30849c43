//! What a plugin said when it was asked for what it offers.

use toolbay_model::Description;

/// What a plugin said when it was asked for its tools, prompts and resources, neither checked nor cleaned. A component
/// that has no lists of its own said nothing: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct Listed(pub(crate) Description);
