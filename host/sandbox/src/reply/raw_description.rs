//! The description that a plugin returns when it is loaded.

use toolbay_model::ComponentDescription;

/// The raw tools, prompts and resources of a plugin, neither checked nor cleaned. The description
/// of a component without list functions is empty: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct RawDescription {
    pub(crate) description: ComponentDescription,
    pub(crate) refusal_reason: Option<String>,
}

impl RawDescription {
    /// Returns the reason why the component cannot be a plugin, or `None` if it can.
    pub fn refusal_reason(&self) -> Option<&str> {
        self.refusal_reason.as_deref()
    }
}

impl From<ComponentDescription> for RawDescription {
    fn from(description: ComponentDescription) -> Self {
        Self {
            description,
            refusal_reason: None,
        }
    }
}
