//! A mismatch between a value and its JSON Schema.

use std::fmt;

/// One mismatch between a value and its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer (RFC 6901) to the value, as one sanitized line. Empty for the whole value.
    pub pointer: String,
    /// The expectation of the schema and the actual value, as one sanitized line.
    pub message: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() {
            "(root)"
        } else {
            &self.pointer
        };
        write!(f, "{pointer}: {}", self.message)
    }
}
