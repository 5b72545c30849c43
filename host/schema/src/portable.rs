//! Rewrites a schema with the keywords that the function schemas of OpenAI, Anthropic and Gemini
//! have in common.
//!
//! The result is less strict than the plugin's schema, which is used to check arguments.
//! Constraints that it cannot express become part of descriptions.

mod description_text;
mod placeholder_schemas;
mod schema_assembly;
mod value_constraints;

use serde_json::{Map, Value, json};

use self::description_text::DescriptionText;
use self::placeholder_schemas::{any_value_schema, recursive_schema, truncated_schema};
use self::schema_assembly::{assemble_schema, merge_part};
use self::value_constraints::{
    describe_choices, implied_types, write_enumeration, write_exclusive_bounds,
};
use super::client_schema::choice_values;
use super::compatibility::uncommon_feature;
use super::keywords::count_values;

/// Keywords that are copied unchanged.
const COPIED_KEYWORDS: [&str; 8] = [
    "title",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    // MCP clients read this keyword, and models do not. Without it, clients would send no header.
    "x-mcp-header",
];

/// Maximum number of values in a schema with inlined definitions: the first constant times the
/// number of values before, plus the second one.
const MAX_GROWTH_FACTOR: usize = 4;
const GROWTH_ALLOWANCE: usize = 500;

/// Maximum nesting of inlined definitions.
const MAX_INLINE_DEPTH: usize = 32;

/// Returns the portable form of a schema.
pub fn portable_schema(schema: &Value) -> Value {
    let mut writer = PortableWriter {
        root: schema,
        values_left: MAX_GROWTH_FACTOR * count_values(schema) + GROWTH_ALLOWANCE,
        open_references: Vec::new(),
    };
    let mut portable = writer.write(schema, MAX_INLINE_DEPTH);
    if let Value::Object(members) = &mut portable {
        // The arguments of a tool are always an object, and no model API reads alternatives of it.
        members.insert("type".into(), "object".into());
        let alternatives = members.remove("anyOf");
        if let Value::Object(properties) = members.entry("properties").or_insert_with(|| json!({}))
        {
            let alternatives = alternatives
                .as_ref()
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for alternative_properties in
                alternatives.filter_map(|alternative| alternative.get("properties")?.as_object())
            {
                for (name, schema) in alternative_properties {
                    properties
                        .entry(name.clone())
                        .or_insert_with(|| schema.clone());
                }
            }
        }
    }
    portable
}

struct PortableWriter<'a> {
    root: &'a Value,
    /// The number of values that may still be written.
    values_left: usize,
    /// The references whose definitions are being written.
    open_references: Vec<&'a str>,
}

impl<'a> PortableWriter<'a> {
    fn write(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else {
            return any_value_schema();
        };
        let Some(values_left) = self
            .values_left
            .checked_sub(1 + members.len())
            .filter(|_| depth > 0)
        else {
            return truncated_schema();
        };
        self.values_left = values_left;
        let Some(target) = members.get("$ref").and_then(Value::as_str) else {
            return self.write_keywords(members, depth);
        };
        let pointer = target.strip_prefix('#').unwrap_or_default();
        let definition = self
            .root
            .pointer(pointer)
            .filter(|_| target.starts_with('#'));
        let mut portable = match definition {
            Some(definition) if !self.open_references.contains(&target) => {
                self.open_references.push(target);
                let inlined = self.write(definition, depth - 1);
                self.open_references.pop();
                inlined
            }
            Some(definition) => recursive_schema(target, definition),
            None => any_value_schema(),
        };
        if let (Some(text), Value::Object(portable_members)) =
            (members.get("description"), &mut portable)
        {
            portable_members.insert("description".into(), text.clone());
        }
        portable
    }

    fn write_keywords(&mut self, members: &'a Map<String, Value>, depth: usize) -> Value {
        let description = members.get("description").and_then(Value::as_str);
        let mut sentences = DescriptionText::new(description);
        let mut output = Map::new();
        write_annotations(members, &mut output, &mut sentences);
        let mut alternatives: Vec<Value> = Vec::new();
        let mut types: Vec<&str> = match members.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let choices = ["oneOf", "anyOf"]
            .into_iter()
            .find_map(|key| Some((key, members.get(key)?.as_array()?)));
        let constant = members.get("const").map(|value| vec![value.clone()]);
        let enumerated =
            constant.or_else(|| members.get("enum").and_then(Value::as_array).cloned());
        let allowed_values =
            enumerated.or_else(|| choices.and_then(|(key, _)| choice_values(members.get(key)?)));
        if let Some(values) = allowed_values {
            types = write_enumeration(&mut output, &mut sentences, &values);
            if let Some((_, branches)) = choices {
                describe_choices(&mut sentences, branches);
            }
        } else if let Some((_, branches)) = choices {
            alternatives = branches
                .iter()
                .map(|branch| self.write(branch, depth - 1))
                .collect();
        }
        write_exclusive_bounds(members, &types, &mut output, &mut sentences);
        if types.is_empty() && alternatives.is_empty() {
            types = implied_types(members);
        }
        if types.contains(&"object") || members.contains_key("properties") {
            self.write_members(members, depth, &mut output, &mut sentences);
        }
        if types.contains(&"array") {
            self.write_items(members, depth, &mut output, &mut sentences);
        }
        for part in members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let part = self.write(part, depth - 1);
            merge_part(&mut output, &mut types, &mut sentences, part);
        }
        assemble_schema(output, &types, alternatives, &sentences)
    }

    fn write_members(
        &mut self,
        members: &'a Map<String, Value>,
        depth: usize,
        output: &mut Map<String, Value>,
        sentences: &mut DescriptionText,
    ) {
        let mut properties = Map::new();
        for (name, schema) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let is_impossible =
                schema == &Value::Bool(false) || schema.get("not") == Some(&json!({}));
            if !is_impossible {
                properties.insert(name.clone(), self.write(schema, depth - 1));
            }
        }
        let required = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required: Vec<Value> = required
            .filter(|name| {
                name.as_str()
                    .is_some_and(|name| properties.contains_key(name))
            })
            .cloned()
            .collect();
        if let Some(additional_schema @ Value::Object(_)) = members.get("additionalProperties") {
            sentences.add(&format!(
                "Members of any name have the schema {additional_schema}."
            ));
        }
        output.insert("properties".into(), properties.into());
        if !required.is_empty() {
            output.insert("required".into(), required.into());
        }
    }

    fn write_items(
        &mut self,
        members: &'a Map<String, Value>,
        depth: usize,
        output: &mut Map<String, Value>,
        sentences: &mut DescriptionText,
    ) {
        let prefix = match (members.get("prefixItems"), members.get("items")) {
            (Some(Value::Array(prefix)), _) | (None, Some(Value::Array(prefix))) => Some(prefix),
            _ => None,
        };
        let items = match (prefix, members.get("items")) {
            (Some(prefix), _) => {
                let mut kinds: Vec<Value> = Vec::new();
                let mut order = Vec::new();
                for item in prefix {
                    let item = self.write(item, depth - 1);
                    order.push(
                        item.get("type")
                            .and_then(Value::as_str)
                            .unwrap_or("value")
                            .to_owned(),
                    );
                    if !kinds.contains(&item) {
                        kinds.push(item);
                    }
                }
                sentences.add(&format!("Items, in this order: {}.", order.join(", ")));
                match <[Value; 1]>::try_from(kinds) {
                    Ok([only]) => only,
                    Err(kinds) => json!({"anyOf": kinds}),
                }
            }
            (None, Some(items @ Value::Object(_))) => self.write(items, depth - 1),
            _ => any_value_schema(),
        };
        if members.get("uniqueItems") == Some(&Value::Bool(true)) {
            sentences.add("Items are unique.");
        }
        output.insert("items".into(), items);
    }
}

/// Writes the keywords that are copied unchanged, and those that become sentences of the
/// description.
fn write_annotations(
    members: &Map<String, Value>,
    output: &mut Map<String, Value>,
    sentences: &mut DescriptionText,
) {
    for key in COPIED_KEYWORDS {
        if let Some(value) = members.get(key) {
            output.insert(key.into(), value.clone());
        }
    }
    match members.get("pattern").and_then(Value::as_str) {
        // A client whose engine cannot compile the pattern would lose the whole list of tools.
        Some(pattern) if uncommon_feature(pattern).is_some() => {
            sentences.add(&format!("Pattern: {pattern}"));
        }
        Some(pattern) => drop(output.insert("pattern".into(), pattern.into())),
        None => {}
    }
    if members.get("format").and_then(Value::as_str) == Some("date-time") {
        output.insert("format".into(), "date-time".into());
    } else if let Some(format) = members.get("format").and_then(Value::as_str) {
        sentences.add(&format!("Format: {format}."));
    }
    if let Some(default) = members.get("default") {
        sentences.add(&format!("Default: {default}."));
    }
}

#[cfg(test)]
mod tests;
