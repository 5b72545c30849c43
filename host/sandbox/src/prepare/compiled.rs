//! A plugin file after compilation, and the information derived from it.

use tempfile::NamedTempFile;
use toolbay_model::ComponentDescription;

use crate::component::docs::ComponentDocs;
use crate::component::plugin_summary::PluginSummary;
use crate::prepare::prepared_component::PreparedComponent;
use crate::reply::raw_description::RawDescription;

/// Compiled code that can be added to the compile cache after the plugin was described.
pub struct UncachedCode {
    /// The code, if it can be cached.
    pub(crate) code: Option<NamedTempFile>,
    /// The number of nested instances with functions, if the component has async functions.
    pub(crate) async_instances: Option<u32>,
}

/// A compiled plugin file.
pub struct CompiledFile {
    pub(crate) prepared: PreparedComponent,
    /// The documentation of its functions.
    pub(crate) docs: ComponentDocs,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
    pub(crate) about: PluginSummary,
    /// True if it is a command that might be an MCP server.
    pub(crate) may_be_mcp_server: bool,
    pub(crate) uncached_code: UncachedCode,
}

impl CompiledFile {
    /// Returns the information about the plugin file.
    pub fn about(&self) -> &PluginSummary {
        &self.about
    }

    /// Returns the description of the component, derived from `listed`. Control characters are
    /// removed from the texts.
    ///
    /// Takes about 10 ms for each megabyte of text and for each thousand plain functions, so it
    /// must run on a thread that can block.
    pub fn description(&mut self, listed: RawDescription) -> ComponentDescription {
        self.prepared
            .set_server_protocol(listed.description.manner.clone());
        let mut description = self.prepared.description(listed, &self.docs);
        description.remarks.extend(self.remarks.iter().cloned());
        description
    }

    /// Returns the component to call, the code to cache, and the information about the file.
    pub fn into_parts(self) -> (PreparedComponent, UncachedCode, PluginSummary) {
        (self.prepared, self.uncached_code, self.about)
    }
}
