//! A form made out of a JSON Schema, and the arguments made out of what was filled in.
//!
//! A property becomes a field if its schema says plainly what it is: a text, a number, yes or no, a choice, or a list of texts
//! or numbers. An object with such properties becomes a group of fields, within bounds. Everything else becomes a field for
//! JSON, and a schema that says nothing of properties becomes one such field as a whole. The form never decides what is
//! valid: the server checks the arguments as those of every call.

mod field;
mod read;
mod schema;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::{Digest, JsonText};

pub(crate) use self::field::{FieldKind, FieldValues, FormField};
use self::schema::fields;

/// A form for the arguments of a tool.
#[derive(Clone, Debug)]
pub(crate) struct ToolForm {
    /// Its fields in the order of the schema.
    pub(crate) fields: Vec<FormField>,
    /// Whether it is one field for JSON, although there could be others.
    pub(crate) raw: bool,
    /// Whether there could be fields.
    pub(crate) has_fields: bool,
    /// Of the schema: what was filled in belongs to this form alone.
    pub(crate) digest: Digest,
}

/// The name of the field for all arguments as JSON.
pub(crate) const RAW: &str = "json";

impl ToolForm {
    /// The form for a schema. `raw` asks for one field for JSON.
    pub(crate) fn of(schema: &JsonText, raw: bool) -> Self {
        let digest = Digest::new(Sha256::digest(schema.get()).into());
        let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
        let fields = fields(&schema);
        let has_fields = fields.is_some();
        let raw = raw || !has_fields;
        Self { fields: fields.filter(|_| !raw).unwrap_or_default(), raw, has_fields, digest }
    }

    /// What is filled in at first.
    pub(crate) fn defaults(&self) -> FieldValues {
        fn add(fields: &[FormField], filled: &mut FieldValues) {
            for field in fields {
                if let FieldKind::Group(fields) = &field.kind {
                    add(fields, filled);
                } else {
                    filled.insert(field.id.clone(), field.default.clone());
                }
            }
        }
        let mut filled = FieldValues::new();
        add(&self.fields, &mut filled);
        filled
    }

    /// The arguments that were filled in.
    ///
    /// # Errors
    ///
    /// What is wrong with a field, by the field's name.
    pub(crate) fn arguments(&self, filled: &FieldValues) -> Result<Map<String, Value>, Vec<(String, String)>> {
        if self.raw {
            let text = filled.get(RAW).map(String::as_str).unwrap_or_default().trim();
            let text = if text.is_empty() { "{}" } else { text };
            return serde_json::from_str(text).map_err(|error| {
                let expected = "expected a JSON object, such as {\"name\": \"value\"}";
                vec![(RAW.to_owned(), format!("{expected}: {error}"))]
            });
        }
        read::arguments(&self.fields, filled)
    }
}

#[cfg(test)]
mod tests;
