//! Properties of a component that are available without its code.

use serde::{Deserialize, Serialize};

use crate::prepare::prepared_component::PreparedComponent;

/// Properties of a component that are queried before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ComponentSummary {
    /// True if the component is a single tool without its own name.
    pub(crate) is_command: bool,
    /// True if the component uses mounted directories.
    pub(crate) has_files: bool,
}

impl ComponentSummary {
    pub(crate) fn of(prepared: &PreparedComponent) -> Self {
        Self {
            is_command: prepared.is_command(),
            has_files: prepared.has_files(),
        }
    }
}
