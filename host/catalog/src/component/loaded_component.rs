//! Compiled components with their contents.

use std::sync::Arc;

use toolbay_model::Digest;

use crate::component::component_code::ComponentCode;
use crate::definition::component_contents::ComponentContents;

/// Compiled component with its contents. Plugins with identical files share one.
#[derive(Debug)]
pub struct LoadedComponent {
    /// Digest of the compiled source.
    pub digest: Digest,
    /// Executable code; `None` for a component of [`LoadedComponent::without_code`].
    pub code: Option<Arc<ComponentCode>>,
    /// Tools, prompts and resources that it offers.
    pub contents: ComponentContents,
    /// Purpose of the component, on one line, as its file states it.
    pub about: Option<String>,
    /// The interfaces that it imports.
    pub imports: Arc<[String]>,
    /// Languages and tools that made it, as its file states them.
    pub made_with: Vec<String>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

impl LoadedComponent {
    /// Creates a component with these contents that cannot be called, for callers that need only
    /// the contents and for plugins that consist of plain files.
    pub fn without_code(contents: ComponentContents) -> Self {
        Self {
            digest: Digest::new([0; 32]),
            code: None,
            contents,
            about: None,
            imports: Arc::default(),
            made_with: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Returns whether it is a single tool without a name.
    pub(crate) fn is_command(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.is_command())
    }
}
