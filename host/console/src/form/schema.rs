//! Conversion of a JSON Schema to form fields.

use serde_json::{Map, Value};
use toolbay_model::text::{clean, clean_line};

use super::field::{FieldKind, FormField};

/// Maximum number of fields of a form. A larger schema has a single JSON field.
const MAX_FIELDS: usize = 60;

/// Maximum depth of groups. Deeper objects have a JSON field.
const MAX_DEPTH: usize = 3;

/// Maximum number of references that are followed.
const MAX_REFERENCES: usize = 8;

/// Maximum number of choices.
const MAX_CHOICES: usize = 200;

/// Maximum lengths of a name and of a description, in bytes.
const MAX_NAME_BYTES: usize = 200;
const MAX_DESCRIPTION_BYTES: usize = 1_000;

/// Maximum length of a string that has a single-line field, in characters.
const LONG_TEXT_CHARS: u64 = 300;

/// Returns the fields of an object schema; `None` if it has no usable properties or too many.
pub(super) fn schema_fields(schema: &Value) -> Option<Vec<FormField>> {
    let mut reader = SchemaReader {
        root: schema,
        count: 0,
    };
    let fields = reader.read_properties(schema, "f", 0)?;
    (reader.count <= MAX_FIELDS).then_some(fields)
}

struct SchemaReader<'a> {
    root: &'a Value,
    count: usize,
}

impl<'a> SchemaReader<'a> {
    /// Returns the fields of an object, with ids that start with `prefix`; `None` if the schema has
    /// keywords that fields cannot express.
    fn read_properties(
        &mut self,
        schema: &'a Value,
        prefix: &str,
        depth: usize,
    ) -> Option<Vec<FormField>> {
        let object = self.resolve(schema)?;
        if [
            "anyOf",
            "oneOf",
            "allOf",
            "if",
            "patternProperties",
            "dependentSchemas",
        ]
        .iter()
        .any(|key| object.contains_key(*key))
        {
            return None;
        }
        let properties = match object.get("properties") {
            Some(properties) => Some(properties.as_object()?),
            // The object accepts any properties, which only JSON can express.
            None if !matches!(object.get("additionalProperties"), Some(Value::Bool(false)))
                && depth > 0 =>
            {
                return None;
            }
            None => None,
        };
        let required: Vec<&str> = object
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields = Vec::new();
        for (index, (name, schema)) in properties.into_iter().flatten().enumerate() {
            self.count += 1;
            if self.count > MAX_FIELDS {
                return None;
            }
            let id = format!("{prefix}{index}");
            fields.push(self.read_field(
                id,
                name,
                schema,
                required.contains(&name.as_str()),
                depth,
            ));
        }
        Some(fields)
    }

    fn read_field(
        &mut self,
        id: String,
        name: &str,
        schema: &'a Value,
        required: bool,
        depth: usize,
    ) -> FormField {
        let resolved = self.resolve(schema).cloned().unwrap_or_default();
        // Keywords next to a reference take precedence over the referenced schema.
        let keyword = |key: &str| schema.get(key).or_else(|| resolved.get(key));
        let description = keyword("description")
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty());
        let description = description.map(|text| truncate_description(&clean(text)));
        let default = keyword("default")
            .or_else(|| resolved.get("const"))
            .filter(|default| !default.is_null())
            .cloned();
        let kind = self.field_kind(&id, schema, &resolved, depth);
        let default = match (&kind, &default) {
            (FieldKind::Group(_), _) | (_, None) => String::new(),
            (FieldKind::Choice(choices), Some(default)) => choices
                .iter()
                .position(|(_, value)| value == default)
                .map(|at| at.to_string())
                .unwrap_or_default(),
            (FieldKind::Text { .. }, Some(Value::String(text))) => text.clone(),
            (FieldKind::List { .. }, Some(Value::Array(items))) => {
                let texts = items.iter().map(|item| {
                    item.as_str()
                        .map_or_else(|| item.to_string(), str::to_owned)
                });
                texts.collect::<Vec<_>>().join("\n")
            }
            (_, Some(default)) => default.to_string(),
        };
        FormField {
            id,
            name: name.to_owned(),
            description,
            required,
            default,
            kind,
        }
    }

    fn field_kind(
        &mut self,
        id: &str,
        schema: &'a Value,
        resolved: &Map<String, Value>,
        depth: usize,
    ) -> FieldKind {
        if let Some(choices) = choices(resolved) {
            return FieldKind::Choice(choices);
        }
        if ["anyOf", "oneOf", "allOf", "not", "if"]
            .iter()
            .any(|key| resolved.contains_key(*key))
        {
            return FieldKind::Json;
        }
        match type_of(resolved) {
            Some("string") => {
                let is_long = resolved
                    .get("maxLength")
                    .and_then(Value::as_u64)
                    .is_some_and(|max_length| max_length > LONG_TEXT_CHARS);
                let has_format = ["format", "pattern"]
                    .iter()
                    .any(|key| resolved.contains_key(*key));
                FieldKind::Text {
                    lines: is_long || !has_format && resolved.get("maxLength").is_none(),
                }
            }
            Some("integer") => FieldKind::Number { whole: true },
            Some("number") => FieldKind::Number { whole: false },
            Some("boolean") => FieldKind::Choice(vec![
                ("yes".into(), true.into()),
                ("no".into(), false.into()),
            ]),
            Some("array") => self.list_kind(resolved),
            Some("object") if depth < MAX_DEPTH => self
                .read_properties(schema, &format!("{id}_"), depth + 1)
                .map_or(FieldKind::Json, FieldKind::Group),
            _ => FieldKind::Json,
        }
    }

    fn list_kind(&self, resolved: &Map<String, Value>) -> FieldKind {
        if resolved.contains_key("prefixItems") {
            return FieldKind::Json;
        }
        let Some(items) = resolved.get("items").and_then(Value::as_object) else {
            return FieldKind::Json;
        };
        let items = match items.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.find_reference(reference).cloned().unwrap_or_default(),
            None => items.clone(),
        };
        if ["enum", "const", "anyOf", "oneOf", "allOf"]
            .iter()
            .any(|key| items.contains_key(*key))
        {
            return FieldKind::Json;
        }
        match type_of(&items) {
            Some("string") => FieldKind::List { numbers: false },
            Some("integer" | "number") => FieldKind::List { numbers: true },
            _ => FieldKind::Json,
        }
    }

    /// Follows references, and skips the `null` branch of a nullable schema.
    fn resolve(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        let mut object = schema.as_object()?;
        for _ in 0..MAX_REFERENCES {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                object = self.find_reference(reference)?;
            } else if let Some(only) = non_null_branch(object) {
                object = only;
            } else {
                return Some(object);
            }
        }
        None
    }

    fn find_reference(&self, reference: &str) -> Option<&'a Map<String, Value>> {
        self.root.pointer(reference.strip_prefix('#')?)?.as_object()
    }
}

/// Returns the other branch of an `anyOf` or `oneOf` that consists of it and `null`.
fn non_null_branch(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let branches = object
        .get("anyOf")
        .or_else(|| object.get("oneOf"))?
        .as_array()?;
    let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
    let mut others = branches.iter().filter(|branch| !is_null(branch));
    let only = others.next()?;
    let second = others.next();
    (second.is_none() && branches.len() == 2)
        .then(|| only.as_object())
        .flatten()
}

/// Returns the only type other than `null`.
fn type_of(schema: &Map<String, Value>) -> Option<&str> {
    match schema.get("type")? {
        Value::String(only) => Some(only),
        Value::Array(types) => {
            let mut others = types
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| *name != "null");
            let only = others.next()?;
            let second = others.next();
            second.is_none().then_some(only)
        }
        _ => None,
    }
}

/// Returns the choices of an enumeration.
fn choices(schema: &Map<String, Value>) -> Option<Vec<(String, Value)>> {
    let label = |value: &Value| {
        clean_line(
            &value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
            MAX_NAME_BYTES,
        )
    };
    if let Some(only) = schema.get("const") {
        return Some(vec![(label(only), only.clone())]);
    }
    let from_branches = || {
        let branches = schema
            .get("oneOf")
            .or_else(|| schema.get("anyOf"))?
            .as_array()?;
        branches
            .iter()
            .map(|branch| branch.get("const").cloned())
            .collect::<Option<Vec<_>>>()
    };
    let values = schema
        .get("enum")
        .and_then(Value::as_array)
        .cloned()
        .or_else(from_branches)?;
    (!values.is_empty() && values.len() <= MAX_CHOICES).then(|| {
        values
            .into_iter()
            .map(|value| (label(&value), value))
            .collect()
    })
}

fn truncate_description(text: &str) -> String {
    if text.len() <= MAX_DESCRIPTION_BYTES {
        return text.to_owned();
    }
    text.get(..text.floor_char_boundary(MAX_DESCRIPTION_BYTES))
        .unwrap_or_default()
        .to_owned()
        + "…"
}
