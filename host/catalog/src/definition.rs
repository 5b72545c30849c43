//! Validated definitions of the tools, prompts, resources and views that components offer.

pub(crate) mod component_contents;
pub(crate) mod definition_meta;
pub(crate) mod fingerprint;
pub(crate) mod prompt_entry;
pub(crate) mod requested_view;
pub(crate) mod resource_entry;
pub(crate) mod tool_definition;
pub(crate) mod view;
pub(crate) mod view_link;
