//! A compiled component and what it offers.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::LazyComponent;

use crate::contents::ComponentContents;

/// A compiled component and what it offers. Plugins with identical files share one.
#[derive(Debug)]
pub struct LoadedComponent {
    /// Digest of what was compiled.
    pub digest: Digest,
    /// What calls enter; `None` for a component of [`LoadedComponent::without_code`].
    pub callable: Option<Arc<LazyComponent>>,
    /// What it offers.
    pub contents: ComponentContents,
    /// What it is for, on one line, as its file says.
    pub about: Option<String>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

impl LoadedComponent {
    /// A component that offers this and cannot be called, for those who only need to know what it would offer, and for
    /// plugins that are plain files.
    pub fn without_code(contents: ComponentContents) -> Self {
        Self { digest: Digest::new([0; 32]), callable: None, contents, about: None, remarks: Vec::new() }
    }

    /// Whether it is a single tool that has no name of its own.
    pub(crate) fn is_command(&self) -> bool {
        self.callable.as_ref().is_some_and(|callable| callable.is_command())
    }
}
