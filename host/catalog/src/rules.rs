//! Grants, the server's rules for loading plugins, and the terms that result from both.

pub(crate) mod approval;
pub(crate) mod budget;
pub(crate) mod grant;
pub(crate) mod grant_intersection;
pub(crate) mod input_schema;
pub(crate) mod load_policy;
pub(crate) mod mount_policy;
pub(crate) mod name_separator;
pub(crate) mod param_headers;
pub(crate) mod terms;
pub(crate) mod tool_pattern;
pub(crate) mod writable_paths;
