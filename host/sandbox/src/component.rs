//! Component files before they are compiled: what they contain, import and export, and the
//! conversion of core modules.

pub(crate) mod adapter;
pub(crate) mod concurrency;
pub(crate) mod contract_interface;
pub(crate) mod contract_versions;
pub(crate) mod docs;
pub(crate) mod export_limits;
pub(crate) mod foreign_host;
pub(crate) mod mcp_detection;
pub(crate) mod nested_component;
pub(crate) mod plugin_summary;
pub(crate) mod preamble;
pub(crate) mod prepare_error;
pub(crate) mod wasi_p3_names;
pub(crate) mod wasm_proposals;
