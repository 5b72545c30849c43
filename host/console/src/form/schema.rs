//! Conversion of a JSON Schema to form fields.

use serde_json::{Map, Value};
use toolbay_model::text::{clean, line};

use super::field::{FieldKind, FormField};

/// Maximum number of fields of a form. A larger schema has a single JSON field.
const FIELDS: usize = 60;

/// Maximum depth of groups. Deeper objects have a JSON field.
const DEPTH: usize = 3;

/// Maximum number of references that are followed.
const REFERENCES: usize = 8;

/// Maximum number of choices.
const CHOICES: usize = 200;

/// Maximum lengths of a name and of a description, in bytes.
const NAME: usize = 200;
const DESCRIPTION: usize = 1_000;

/// Maximum length of a string that has a single-line field, in characters.
const LONG: u64 = 300;

/// Returns the fields of an object schema; `None` if it has no usable properties or too many.
pub(super) fn fields(schema: &Value) -> Option<Vec<FormField>> {
    let mut reading = SchemaReader { root: schema, count: 0 };
    let fields = reading.properties(schema, "f", 0)?;
    (reading.count <= FIELDS).then_some(fields)
}

struct SchemaReader<'a> {
    root: &'a Value,
    count: usize,
}

impl<'a> SchemaReader<'a> {
    /// Returns the fields of an object, with ids that start with `prefix`; `None` if the schema has
    /// keywords that fields cannot express.
    fn properties(&mut self, schema: &'a Value, prefix: &str, depth: usize) -> Option<Vec<FormField>> {
        let object = self.resolved(schema)?;
        if ["anyOf", "oneOf", "allOf", "if", "patternProperties", "dependentSchemas"]
            .iter()
            .any(|key| object.contains_key(*key))
        {
            return None;
        }
        let properties = match object.get("properties") {
            Some(properties) => Some(properties.as_object()?),
            // The object accepts any properties, which only JSON can express.
            None if !matches!(object.get("additionalProperties"), Some(Value::Bool(false))) && depth > 0 => {
                return None;
            }
            None => None,
        };
        let required: Vec<&str> =
            object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (index, (name, schema)) in properties.into_iter().flatten().enumerate() {
            self.count += 1;
            if self.count > FIELDS {
                return None;
            }
            let id = format!("{prefix}{index}");
            fields.push(self.field(id, name, schema, required.contains(&name.as_str()), depth));
        }
        Some(fields)
    }

    fn field(&mut self, id: String, name: &str, schema: &'a Value, required: bool, depth: usize) -> FormField {
        let found = self.resolved(schema).cloned().unwrap_or_default();
        // Keywords next to a reference take precedence over the referenced schema.
        let beside = |key: &str| schema.get(key).or_else(|| found.get(key));
        let description = beside("description").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let description = description.map(|text| cut(&clean(text)));
        let default = beside("default").or_else(|| found.get("const")).filter(|default| !default.is_null()).cloned();
        let kind = self.kind(&id, schema, &found, depth);
        let default = match (&kind, &default) {
            (FieldKind::Group(_), _) | (_, None) => String::new(),
            (FieldKind::Choice(choices), Some(default)) => {
                choices.iter().position(|(_, value)| value == default).map(|at| at.to_string()).unwrap_or_default()
            }
            (FieldKind::Text { .. }, Some(Value::String(text))) => text.clone(),
            (FieldKind::List { .. }, Some(Value::Array(items))) => {
                let texts = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
                texts.collect::<Vec<_>>().join("\n")
            }
            (_, Some(default)) => default.to_string(),
        };
        FormField { id, name: name.to_owned(), description, required, default, kind }
    }

    fn kind(&mut self, id: &str, schema: &'a Value, found: &Map<String, Value>, depth: usize) -> FieldKind {
        if let Some(choices) = choices(found) {
            return FieldKind::Choice(choices);
        }
        if ["anyOf", "oneOf", "allOf", "not", "if"].iter().any(|key| found.contains_key(*key)) {
            return FieldKind::Json;
        }
        match type_of(found) {
            Some("string") => {
                let long = found.get("maxLength").and_then(Value::as_u64).is_some_and(|most| most > LONG);
                let plain = ["format", "pattern"].iter().any(|key| found.contains_key(*key));
                FieldKind::Text { lines: long || !plain && found.get("maxLength").is_none() }
            }
            Some("integer") => FieldKind::Number { whole: true },
            Some("number") => FieldKind::Number { whole: false },
            Some("boolean") => FieldKind::Choice(vec![("yes".into(), true.into()), ("no".into(), false.into())]),
            Some("array") => self.list(found),
            Some("object") if depth < DEPTH => {
                self.properties(schema, &format!("{id}_"), depth + 1).map_or(FieldKind::Json, FieldKind::Group)
            }
            _ => FieldKind::Json,
        }
    }

    fn list(&self, found: &Map<String, Value>) -> FieldKind {
        if found.contains_key("prefixItems") {
            return FieldKind::Json;
        }
        let Some(items) = found.get("items").and_then(Value::as_object) else { return FieldKind::Json };
        let items = match items.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.at(reference).cloned().unwrap_or_default(),
            None => items.clone(),
        };
        if ["enum", "const", "anyOf", "oneOf", "allOf"].iter().any(|key| items.contains_key(*key)) {
            return FieldKind::Json;
        }
        match type_of(&items) {
            Some("string") => FieldKind::List { numbers: false },
            Some("integer" | "number") => FieldKind::List { numbers: true },
            _ => FieldKind::Json,
        }
    }

    /// Follows references, and skips the `null` branch of a nullable schema.
    fn resolved(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        let mut object = schema.as_object()?;
        for _ in 0..REFERENCES {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                object = self.at(reference)?;
            } else if let Some(only) = only_other_than_null(object) {
                object = only;
            } else {
                return Some(object);
            }
        }
        None
    }

    fn at(&self, reference: &str) -> Option<&'a Map<String, Value>> {
        self.root.pointer(reference.strip_prefix('#')?)?.as_object()
    }
}

/// Returns the other branch of an `anyOf` or `oneOf` that consists of it and `null`.
fn only_other_than_null(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let branches = object.get("anyOf").or_else(|| object.get("oneOf"))?.as_array()?;
    let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
    let mut others = branches.iter().filter(|branch| !is_null(branch));
    let (only, none) = (others.next()?, others.next());
    (none.is_none() && branches.len() == 2).then(|| only.as_object()).flatten()
}

/// Returns the only type other than `null`.
fn type_of(schema: &Map<String, Value>) -> Option<&str> {
    match schema.get("type")? {
        Value::String(only) => Some(only),
        Value::Array(types) => {
            let mut others = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let (only, none) = (others.next()?, others.next());
            none.is_none().then_some(only)
        }
        _ => None,
    }
}

/// Returns the choices of an enumeration.
fn choices(schema: &Map<String, Value>) -> Option<Vec<(String, Value)>> {
    let shown = |value: &Value| line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), NAME);
    if let Some(only) = schema.get("const") {
        return Some(vec![(shown(only), only.clone())]);
    }
    let from_branches = || {
        let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        branches.iter().map(|branch| branch.get("const").cloned()).collect::<Option<Vec<_>>>()
    };
    let values = schema.get("enum").and_then(Value::as_array).cloned().or_else(from_branches)?;
    (!values.is_empty() && values.len() <= CHOICES)
        .then(|| values.into_iter().map(|value| (shown(&value), value)).collect())
}

fn cut(text: &str) -> String {
    if text.len() <= DESCRIPTION {
        return text.to_owned();
    }
    text.get(..text.floor_char_boundary(DESCRIPTION)).unwrap_or_default().to_owned() + "…"
}
