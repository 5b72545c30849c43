//! What can be told of a component without its code.

use serde::{Deserialize, Serialize};

use crate::prepared::Prepared;

/// What is asked of a component before a call enters it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Facts {
    /// Whether it is a single tool that has no name of its own.
    pub(crate) is_command: bool,
    /// Whether it would find folders that it is given.
    pub(crate) has_files: bool,
}

impl Facts {
    pub(crate) fn of(prepared: &Prepared) -> Self {
        Self { is_command: prepared.is_command(), has_files: prepared.has_files() }
    }
}
