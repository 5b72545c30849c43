//! Properties of a component that are available without its code.

use serde::{Deserialize, Serialize};

use crate::prepare::prepared_component::PreparedComponent;

/// Properties of a component that are queried before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ComponentSummary {
    /// True if the component is a single tool without its own name.
    pub is_command: bool,
    /// False if the component can reach mounted directories only through WASI 0.3, where the host
    /// provides none.
    pub has_files: bool,
}

impl ComponentSummary {
    /// Returns the properties of a component whose code is open.
    pub fn of(prepared: &PreparedComponent) -> Self {
        Self {
            is_command: prepared.is_command(),
            has_files: prepared.has_files(),
        }
    }
}
