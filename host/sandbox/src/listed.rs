//! What a plugin said when it was asked for what it offers.

use toolbay_model::Description;

/// What a plugin said when it was asked for its tools, prompts and resources, neither checked nor cleaned. A component
/// that has no lists of its own said nothing: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct Listed {
    pub(crate) description: Description,
    pub(crate) refused: Option<String>,
}

impl Listed {
    /// Why it cannot be a plugin, after all that was tried; `None` if it can.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

impl From<Description> for Listed {
    fn from(description: Description) -> Self {
        Self { description, refused: None }
    }
}
