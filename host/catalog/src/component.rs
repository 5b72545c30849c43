//! A compiled component and the tools that it defines.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::Prepared;

use crate::definition::Definition;

/// A compiled component and the tools that it defines. Plugins with identical files share one.
#[derive(Debug)]
pub struct Component {
    /// Digest of what was compiled.
    pub digest: Digest,
    /// The compiled code; `None` for a component of [`Component::without_code`].
    pub prepared: Option<Arc<Prepared>>,
    /// Its tools, sorted by name.
    pub tools: Vec<Arc<Definition>>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

impl Component {
    /// A component with these tools that cannot be called, for those who only need to know what it would offer.
    pub fn without_code(tools: Vec<Arc<Definition>>) -> Self {
        Self { digest: Digest::new([0; 32]), prepared: None, tools, remarks: Vec::new() }
    }

    /// Whether it is a single tool that has no name of its own.
    pub(crate) fn is_command(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.is_command())
    }
}
