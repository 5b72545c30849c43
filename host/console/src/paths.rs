//! Where the console is, and the name of a field that every form has.

/// Where the console is. `/` leads there.
pub const PATH: &str = "/console";

/// The field with the token that each form has.
pub(crate) const CSRF: &str = "csrf";
