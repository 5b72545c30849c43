//! The description that a plugin returns when it is loaded.

use toolbay_model::ComponentDescription;

/// The raw tools, prompts and resources of a plugin, neither checked nor cleaned. The description
/// of a component without list functions is empty: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct RawDescription {
    pub(crate) description: ComponentDescription,
    pub(crate) refused: Option<String>,
}

impl RawDescription {
    /// Returns the reason why the component cannot be a plugin, or `None` if it can.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

impl From<ComponentDescription> for RawDescription {
    fn from(description: ComponentDescription) -> Self {
        Self {
            description,
            refused: None,
        }
    }
}
