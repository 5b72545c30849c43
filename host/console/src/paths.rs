//! The base path of the console, and the name of the CSRF form field.

/// Base path of the console. `/` redirects there.
pub const PATH: &str = "/console";

/// Name of the form field with the CSRF token.
pub(crate) const CSRF_FIELD: &str = "csrf";
