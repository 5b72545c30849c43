//! The fields of a form.

use std::collections::HashMap;

/// Submitted values, by the names of fields.
pub(crate) type FieldValues = HashMap<String, String>;

/// Returns the value of a field; empty if the form does not have it.
pub(crate) fn value_or_empty<'a>(values: &'a FieldValues, name: &str) -> &'a str {
    values.get(name).map(String::as_str).unwrap_or_default()
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormField {
    /// Name of the field in the form.
    pub(crate) id: String,
    /// Name of the property.
    pub(crate) name: String,
    /// Description from the schema.
    pub(crate) description: Option<String>,
    /// True if the property is required.
    pub(crate) required: bool,
    /// Initial value.
    pub(crate) default: String,
    /// The kind of the field.
    pub(crate) kind: FieldKind,
}

/// The kind of a field, which determines its input element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    /// A string, with several lines if `lines` is set.
    Text { lines: bool },
    /// A number, or an integer if `whole` is set.
    Number { whole: bool },
    /// A choice of one value.
    Choice(Vec<(String, serde_json::Value)>),
    /// A list with one item per line: of numbers if `numbers` is set, or of strings.
    List { numbers: bool },
    /// A JSON value.
    Json,
    /// Nested fields that form an object.
    Group(Vec<FormField>),
}
