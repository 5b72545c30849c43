//! Forms that are generated from a JSON Schema, and the conversion of submitted forms to arguments.
//!
//! A property becomes a field if its schema has a simple type: string, number, boolean,
//! enumeration, or an array of strings or numbers. An object with such properties becomes a group
//! of fields, up to a maximum depth. Any other property becomes a JSON field. A schema without
//! usable properties becomes a single JSON field. The form does not validate arguments: the server
//! checks them as for every call.

mod arguments;
mod field;
mod schema;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::{Digest, JsonText};

pub(crate) use self::field::{FieldKind, FieldValues, FormField, value_or_empty};
use self::schema::schema_fields;

/// A form for the arguments of a tool.
#[derive(Clone, Debug)]
pub(crate) struct ToolForm {
    /// The fields, in the order of the schema.
    pub(crate) fields: Vec<FormField>,
    /// True if the form is a single JSON field, although it may have other fields.
    pub(crate) is_raw: bool,
    /// True if the schema can be represented by fields.
    pub(crate) has_fields: bool,
    /// Digest of the schema. Submitted values are only valid for a form with this digest.
    pub(crate) digest: Digest,
}

/// Name of the field for all arguments as JSON.
pub(crate) const RAW_FIELD: &str = "json";

impl ToolForm {
    /// Creates the form for a schema. If `raw` is set, the form is a single JSON field.
    pub(crate) fn from_schema(schema: &JsonText, raw: bool) -> Self {
        let digest = Digest::new(Sha256::digest(schema.get()).into());
        let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
        let fields = schema_fields(&schema);
        let has_fields = fields.is_some();
        let is_raw = raw || !has_fields;
        Self {
            fields: fields.filter(|_| !is_raw).unwrap_or_default(),
            is_raw,
            has_fields,
            digest,
        }
    }

    /// Returns the initial values of the fields.
    pub(crate) fn defaults(&self) -> FieldValues {
        fn add(fields: &[FormField], values: &mut FieldValues) {
            for field in fields {
                if let FieldKind::Group(fields) = &field.kind {
                    add(fields, values);
                } else {
                    values.insert(field.id.clone(), field.default.clone());
                }
            }
        }
        let mut values = FieldValues::new();
        add(&self.fields, &mut values);
        values
    }

    /// Converts submitted values to arguments.
    ///
    /// # Errors
    ///
    /// Returns the names of the invalid fields and the error of each.
    pub(crate) fn parse_arguments(
        &self,
        values: &FieldValues,
    ) -> Result<Map<String, Value>, Vec<(String, String)>> {
        if self.is_raw {
            let text = values
                .get(RAW_FIELD)
                .map(String::as_str)
                .unwrap_or_default()
                .trim();
            let text = if text.is_empty() { "{}" } else { text };
            return serde_json::from_str(text).map_err(|error| {
                let expected = "expected a JSON object, such as {\"name\": \"value\"}";
                vec![(RAW_FIELD.to_owned(), format!("{expected}: {error}"))]
            });
        }
        arguments::parse_arguments(&self.fields, values)
    }
}

#[cfg(test)]
mod tests;
