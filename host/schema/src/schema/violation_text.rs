//! The texts of violations and of errors in schemas, within bounds.

use std::fmt::{self, Write as _};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use toolbay_model::SchemaViolation;
use toolbay_model::text::clean_line;

use crate::budget;

/// The base URI against which the library resolves relative references.
const BASE_URI: &str = "json-schema:///";

/// The dialect of a schema without `$schema`.
const DEFAULT_DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Maximum size of the message of a violation, in bytes. A longer message omits the value.
pub(super) const MAX_MESSAGE_BYTES: usize = 300;

/// Returns a violation of the whole value.
pub(super) fn whole_value_violation(message: &str) -> Vec<SchemaViolation> {
    vec![SchemaViolation {
        pointer: String::new(),
        message: message.to_owned(),
    }]
}

/// Describes the error. Omits the value if it is long.
pub(super) fn describe(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return clean_line(&describe_reference(error), 2 * MAX_MESSAGE_BYTES);
    }
    let (message, is_complete) = truncated_message(error);
    // A long value is not quoted.
    let message = if is_complete {
        message
    } else {
        truncated_message(&error.masked()).0
    };
    if message.contains(budget::STEP_KEYWORD) {
        // The message quotes the schema, which contains the step keyword.
        return format!("does not match `{}`", error.kind().keyword());
    }
    clean_line(&message, MAX_MESSAGE_BYTES)
}

/// Describes an invalid reference to another part of the schema, or an unknown dialect.
fn describe_reference(error: &ReferencingError) -> String {
    let clean = |text: &str| clean_line(text, MAX_MESSAGE_BYTES);
    match error {
        ReferencingError::Unretrievable { uri, .. } => format!(
            "refers to {:?}, but a schema cannot refer to another document; copy the definition into the schema",
            clean(uri.strip_prefix(BASE_URI).unwrap_or(uri))
        ),
        ReferencingError::PointerToNowhere { pointer } => {
            format!(
                "refers to {:?}, which does not exist",
                clean(&format!("#{pointer}"))
            )
        }
        ReferencingError::NoSuchAnchor { anchor } => {
            format!(
                "refers to {:?}, which does not exist",
                clean(&format!("#{anchor}"))
            )
        }
        ReferencingError::UnknownSpecification { specification } => format!(
            "has the unknown dialect {:?} in $schema; leave $schema out, or use {DEFAULT_DIALECT:?}",
            clean(specification)
        ),
        error => error.to_string(),
    }
}

/// Returns the beginning of a message, and whether it is complete. The rest is not formatted,
/// because it may quote a megabyte.
fn truncated_message(message: &impl fmt::Display) -> (String, bool) {
    let mut buffer = MessageBuffer(String::new());
    let is_complete = write!(buffer, "{message}").is_ok();
    (buffer.0, is_complete)
}

/// A buffer for a message. Its capacity is slightly more than the maximum size of a message, so
/// that a longer one can be detected.
struct MessageBuffer(String);

impl fmt::Write for MessageBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.floor_char_boundary((MAX_MESSAGE_BYTES + 8).saturating_sub(self.0.len()));
        self.0.push_str(text.get(..length).unwrap_or_default());
        if self.0.len() > MAX_MESSAGE_BYTES {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// Returns the location of the error. Names in it are untrusted.
pub(super) fn violation_pointer(error: &ValidationError<'_>) -> String {
    clean_line(error.instance_path().as_str(), MAX_MESSAGE_BYTES)
}
