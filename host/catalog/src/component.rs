//! A compiled component and what it offers.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::Callable;

use crate::contents::Contents;

/// A compiled component and what it offers. Plugins with identical files share one.
#[derive(Debug)]
pub struct Component {
    /// Digest of what was compiled.
    pub digest: Digest,
    /// What calls enter; `None` for a component of [`Component::without_code`].
    pub callable: Option<Arc<Callable>>,
    /// What it offers.
    pub contents: Contents,
    /// What it is for, on one line, as its file says.
    pub about: Option<String>,
    /// Warnings for the operator, such as functions that are not offered and why.
    pub remarks: Vec<String>,
}

impl Component {
    /// A component that offers this and cannot be called, for those who only need to know what it would offer, and for
    /// plugins that are plain files.
    pub fn without_code(contents: Contents) -> Self {
        Self { digest: Digest::new([0; 32]), callable: None, contents, about: None, remarks: Vec::new() }
    }

    /// Whether it is a single tool that has no name of its own.
    pub(crate) fn is_command(&self) -> bool {
        self.callable.as_ref().is_some_and(|callable| callable.is_command())
    }
}
