//! A plugin file after compilation, and what was learned about it.

use tempfile::NamedTempFile;
use toolbay_model::ComponentDescription;

use crate::about::PluginSummary;
use crate::docs::ComponentDocs;
use crate::prepared_component::PreparedComponent;
use crate::raw_description::RawDescription;

/// Compiled code that can be added to the compile cache after it was asked for what it offers.
pub struct UncachedCode {
    /// The code, if it can be kept.
    pub(crate) code: Option<NamedTempFile>,
    /// Instances with functions within the component, if it has async functions.
    pub(crate) tasked: Option<u32>,
}

/// A compiled plugin file.
pub struct CompiledFile {
    pub(crate) prepared: PreparedComponent,
    /// The documentation of its functions.
    pub(crate) docs: ComponentDocs,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
    pub(crate) about: PluginSummary,
    /// Whether it is a command that may be an MCP server.
    pub(crate) speaks: bool,
    pub(crate) scratch: UncachedCode,
}

impl CompiledFile {
    /// What the file is.
    pub fn about(&self) -> &PluginSummary {
        &self.about
    }

    /// What it offers, of which it said this, with the texts cleaned of control characters.
    ///
    /// Takes about 10 ms for each megabyte of text and for each thousand of plain functions, so it must run on a thread
    /// that may block.
    pub fn description(&mut self, listed: RawDescription) -> ComponentDescription {
        self.prepared.set_mcp_endpoint(listed.description.manner.clone());
        let mut description = self.prepared.description(listed, &self.docs);
        description.remarks.extend(self.remarks.iter().cloned());
        description
    }

    /// The component to call, the code to cache, and what is known about the file.
    pub fn into_parts(self) -> (PreparedComponent, UncachedCode, PluginSummary) {
        (self.prepared, self.scratch, self.about)
    }
}
