//! A field of a form.

use std::collections::HashMap;

/// What was filled in, by the names of fields.
pub(crate) type FieldValues = HashMap<String, String>;

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormField {
    /// Its name in the form.
    pub(crate) id: String,
    /// The name of the property.
    pub(crate) name: String,
    /// What the schema says of it.
    pub(crate) description: Option<String>,
    /// Whether the property must be there.
    pub(crate) required: bool,
    /// What it is filled with at first.
    pub(crate) default: String,
    /// What can be filled in.
    pub(crate) kind: FieldKind,
}

/// What can be filled in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    /// A text on one line, or on several.
    Text { lines: bool },
    /// A number, an integer if `whole`.
    Number { whole: bool },
    /// Yes or no.
    Choice(Vec<(String, serde_json::Value)>),
    /// A list, one item a line: of numbers, or of texts.
    List { numbers: bool },
    /// JSON.
    Json,
    /// Further fields, which make an object.
    Group(Vec<FormField>),
}
