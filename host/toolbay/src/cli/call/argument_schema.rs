//! What the input schema of a tool says about the type of one argument.
//!
//! This only chooses how to read a text. The server checks the arguments with the whole schema.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of references that are followed, and depth of alternatives.
const MAX_DEPTH: usize = 16;

/// Maximum number of alternatives of one schema.
const MAX_ALTERNATIVES: usize = 256;

/// A part of an input schema, with the whole for its references.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgumentSchema<'a> {
    root: &'a Value,
    part: &'a Value,
}

impl<'a> ArgumentSchema<'a> {
    /// Creates the schema of all arguments.
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, part: root }
    }

    fn at(self, part: &'a Value) -> Self {
        Self { part, ..self }
    }

    /// Returns the schema and the alternatives in it, with references resolved.
    fn alternatives(self) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut open = vec![(self.part, 0)];
        while let Some((part, depth)) = open.pop() {
            if found.len() >= MAX_ALTERNATIVES || depth > MAX_DEPTH {
                continue;
            }
            found.push(part);
            let reference = part.get("$ref").and_then(Value::as_str);
            let target = reference
                .and_then(|reference| reference.strip_prefix('#'))
                .and_then(|pointer| self.root.pointer(pointer));
            let choices = ["anyOf", "oneOf", "allOf"]
                .iter()
                .filter_map(|keyword| part.get(keyword)?.as_array())
                .flatten();
            open.extend(
                target
                    .into_iter()
                    .chain(choices)
                    .map(|part| (part, depth + 1)),
            );
        }
        found
    }

    /// Returns the names of the types that the schema allows. Empty if it does not restrict them.
    pub(super) fn types(self) -> BTreeSet<&'a str> {
        let mut types = BTreeSet::new();
        for part in self.alternatives() {
            match part.get("type") {
                Some(Value::String(name)) => types.extend([name.as_str()]),
                Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
                _ if part.get("properties").is_some() => types.extend(["object"]),
                _ => {
                    let values = part.get("enum").and_then(Value::as_array);
                    let values = values.into_iter().flatten().chain(part.get("const"));
                    for value in values {
                        types.insert(type_name(value));
                    }
                }
            }
        }
        types
    }

    /// Returns whether the schema allows a type by its name.
    pub(super) fn allows(self, name: &str) -> bool {
        self.types().contains(name)
    }

    /// Returns whether the schema allows the type of this value.
    pub(super) fn accepts(self, value: &Value) -> bool {
        let types = self.types();
        let is_integer = match value {
            Value::Number(number) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        };
        types.contains(type_name(value)) || is_integer && types.contains("integer")
    }

    /// Returns whether texts are base64.
    pub(super) fn is_base64(self) -> bool {
        self.alternatives().iter().any(|part| {
            part.get("contentEncoding").and_then(Value::as_str) == Some("base64")
                || part.get("format").and_then(Value::as_str) == Some("byte")
        })
    }

    /// Returns the schema of the items of an array.
    pub(super) fn items(self) -> Self {
        let items = self
            .alternatives()
            .iter()
            .find_map(|part| part.get("items"));
        self.at(items.unwrap_or(&Value::Bool(true)))
    }

    /// Returns the schema of a declared property.
    pub(super) fn declared_property(self, name: &str) -> Option<Self> {
        let alternatives = self.alternatives();
        let declared = alternatives
            .iter()
            .find_map(|part| part.get("properties")?.get(name));
        declared.map(|part| self.at(part))
    }

    /// Returns the schema that all properties have that are not declared. `None` if they have no
    /// schema.
    pub(super) fn additional_property(self) -> Option<Self> {
        let alternatives = self.alternatives();
        let schema = alternatives
            .iter()
            .find_map(|part| part.get("additionalProperties"))?;
        // `true` gives no type.
        schema.is_object().then(|| self.at(schema))
    }

    /// Returns the names of the declared properties.
    pub(super) fn property_names(self) -> BTreeSet<&'a str> {
        let alternatives = self.alternatives();
        let objects = alternatives
            .iter()
            .filter_map(|part| part.get("properties")?.as_object());
        objects
            .flat_map(|object| object.keys().map(String::as_str))
            .collect()
    }

    /// Returns whether the schema allows properties that it does not declare.
    pub(super) fn is_open(self) -> bool {
        let is_closed =
            |part: &&Value| part.get("additionalProperties") == Some(&Value::Bool(false));
        !self.alternatives().iter().any(is_closed)
    }
}

/// Returns the name of a value's type in a schema.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
