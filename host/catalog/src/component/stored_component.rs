//! A component from the compile cache that is not checked yet.

use std::sync::Arc;

use toolbay_model::{ComponentDescription, Digest, ToolDefinition};
use toolbay_sandbox::PluginSummary;

use crate::component::component_code::ComponentCode;
use crate::component::loaded_component::LoadedComponent;
use crate::definition::component_contents::ComponentContents;
use crate::folder::description_limits::DescribeLimits;

/// Maximum number of items, and of bytes of schemas, of a stored component that is checked
/// immediately.
const MAX_QUICK_CHECK_ITEMS: usize = 64;
const MAX_QUICK_CHECK_SCHEMA_BYTES: usize = 64 << 10;

/// Stored component that is not checked yet.
pub(crate) struct StoredComponent {
    pub(crate) digest: Digest,
    pub(crate) code: ComponentCode,
    pub(crate) description: ComponentDescription,
    pub(crate) about: PluginSummary,
}

impl StoredComponent {
    /// Returns whether checking its description takes a fraction of a millisecond.
    pub(crate) fn is_quick_to_check(&self) -> bool {
        let ComponentDescription {
            tools,
            prompts,
            resources,
            templates,
            ..
        } = &self.description;
        let items = tools.len() + prompts.len() + resources.len() + templates.len();
        let schemas = tools
            .iter()
            .flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()]);
        // Even a short pattern can take long to compile.
        let mut patterns = schemas
            .flatten()
            .filter(|text| text.contains("pattern") || text.contains("\\u"));
        items <= MAX_QUICK_CHECK_ITEMS
            && tools
                .iter()
                .map(ToolDefinition::schema_bytes)
                .sum::<usize>()
                <= MAX_QUICK_CHECK_SCHEMA_BYTES
            && patterns.next().is_none()
    }

    /// Checks the description.
    ///
    /// # Errors
    ///
    /// The reason why the component is refused.
    pub(crate) fn check(self, limits: &DescribeLimits) -> Result<LoadedComponent, String> {
        limits.check(&self.description)?;
        let remarks = self.description.remarks.clone();
        Ok(LoadedComponent {
            digest: self.digest,
            code: Some(Arc::new(self.code)),
            contents: ComponentContents::from_stored(self.description)?,
            about: self.about.description,
            imports: self.about.imports.into(),
            made_with: self.about.made_with,
            remarks,
        })
    }
}
