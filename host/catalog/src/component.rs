//! A component that is compiled and has described itself.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::Prepared;

use crate::definition::Definition;

/// A component that is compiled and has described itself. Plugins whose files hold the same bytes share one.
#[derive(Debug)]
pub struct Component {
    /// The identity of what was compiled.
    pub digest: Digest,
    /// The compiled code; absent from a component that only stands for one.
    pub prepared: Option<Arc<Prepared>>,
    /// Its tools, sorted by name.
    pub tools: Vec<Arc<Definition>>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

impl Component {
    /// A component with these tools that cannot be called: for whoever wants to know what would be offered.
    pub fn without_code(tools: Vec<Arc<Definition>>) -> Self {
        Self { digest: Digest::new([0; 32]), prepared: None, tools, remarks: Vec::new() }
    }

    /// Whether it is one tool without a name of its own.
    pub(crate) fn is_command(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.is_command())
    }
}
