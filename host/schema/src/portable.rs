//! Rewrites a schema with the keywords that the function schemas of OpenAI, Anthropic and Gemini
//! have in common.
//!
//! The result is less strict than the plugin's schema, which is used to check arguments.
//! Constraints that it cannot express become part of descriptions.

use serde_json::{Map, Value, json};

use super::client_schema::{choice_values, type_name};
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

/// Maximum length of a sentence that is added to a description, in characters. Longer ones, such as
/// long lists of values, are omitted.
const MAX_SENTENCE_CHARS: usize = 1_000;

/// The types of an unrestricted value.
const ALL_TYPES: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];

/// Returns the portable form of a schema.
pub fn portable_schema(schema: &Value) -> Value {
    let mut writer = PortableWriter {
        root: schema,
        values_left: MAX_GROWTH_FACTOR * count_values(schema) + GROWTH_ALLOWANCE,
        open_references: Vec::new(),
    };
    let mut written = writer.write(schema, MAX_INLINE_DEPTH);
    if let Value::Object(members) = &mut written {
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
            for own in
                alternatives.filter_map(|alternative| alternative.get("properties")?.as_object())
            {
                for (name, schema) in own {
                    properties
                        .entry(name.clone())
                        .or_insert_with(|| schema.clone());
                }
            }
        }
    }
    written
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
        let Some(room) = self
            .values_left
            .checked_sub(1 + members.len())
            .filter(|_| depth > 0)
        else {
            return truncated_schema();
        };
        self.values_left = room;
        let Some(target) = members.get("$ref").and_then(Value::as_str) else {
            return self.write_keywords(members, depth);
        };
        let place = target.strip_prefix('#').unwrap_or_default();
        let definition = self.root.pointer(place).filter(|_| target.starts_with('#'));
        let mut written = match definition {
            Some(definition) if !self.open_references.contains(&target) => {
                self.open_references.push(target);
                let written = self.write(definition, depth - 1);
                self.open_references.pop();
                written
            }
            Some(definition) => recursive_schema(target, definition),
            None => any_value_schema(),
        };
        if let (Some(text), Value::Object(written)) = (members.get("description"), &mut written) {
            written.insert("description".into(), text.clone());
        }
        written
    }

    fn write_keywords(&mut self, members: &'a Map<String, Value>, depth: usize) -> Value {
        let mut words = DescriptionText(
            members
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .into_iter()
                .collect(),
        );
        let mut own = Map::new();
        for key in COPIED_KEYWORDS {
            if let Some(value) = members.get(key) {
                own.insert(key.into(), value.clone());
            }
        }
        match members.get("pattern").and_then(Value::as_str) {
            // A client whose engine cannot compile the pattern would lose the whole list of tools.
            Some(pattern) if uncommon_feature(pattern).is_some() => {
                words.add(&format!("Pattern: {pattern}"))
            }
            Some(pattern) => drop(own.insert("pattern".into(), pattern.into())),
            None => {}
        }
        if members.get("format").and_then(Value::as_str) == Some("date-time") {
            own.insert("format".into(), "date-time".into());
        } else if let Some(format) = members.get("format").and_then(Value::as_str) {
            words.add(&format!("Format: {format}."));
        }
        if let Some(default) = members.get("default") {
            words.add(&format!("Default: {default}."));
        }
        let mut alternatives: Vec<Value> = Vec::new();
        let mut types: Vec<&str> = match members.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let choices = ["oneOf", "anyOf"]
            .into_iter()
            .find_map(|key| Some((key, members.get(key)?.as_array()?)));
        let listed = members.get("const").map(|value| vec![value.clone()]);
        let listed = listed.or_else(|| members.get("enum").and_then(Value::as_array).cloned());
        let listed =
            listed.or_else(|| choices.and_then(|(key, _)| choice_values(members.get(key)?)));
        if let Some(listed) = listed {
            types = write_enumeration(&mut own, &mut words, &listed);
            if let Some((_, branches)) = choices {
                describe_choices(&mut words, branches);
            }
        } else if let Some((_, branches)) = choices {
            alternatives = branches
                .iter()
                .map(|branch| self.write(branch, depth - 1))
                .collect();
        }
        write_exclusive_bounds(members, &types, &mut own, &mut words);
        if types.is_empty() && alternatives.is_empty() {
            types = implied_types(members);
        }
        if types.contains(&"object") || members.contains_key("properties") {
            self.write_members(members, depth, &mut own, &mut words);
        }
        if types.contains(&"array") {
            self.write_items(members, depth, &mut own, &mut words);
        }
        for part in members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let part = self.write(part, depth - 1);
            merge_part(&mut own, &mut types, &mut words, part);
        }
        assemble_schema(own, &types, alternatives, &words)
    }

    fn write_members(
        &mut self,
        members: &'a Map<String, Value>,
        depth: usize,
        own: &mut Map<String, Value>,
        words: &mut DescriptionText,
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
        if let Some(rest @ Value::Object(_)) = members.get("additionalProperties") {
            words.add(&format!("Members of any name have the schema {rest}."));
        }
        own.insert("properties".into(), properties.into());
        if !required.is_empty() {
            own.insert("required".into(), required.into());
        }
    }

    fn write_items(
        &mut self,
        members: &'a Map<String, Value>,
        depth: usize,
        own: &mut Map<String, Value>,
        words: &mut DescriptionText,
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
                words.add(&format!("Items, in this order: {}.", order.join(", ")));
                match <[Value; 1]>::try_from(kinds) {
                    Ok([only]) => only,
                    Err(kinds) => json!({"anyOf": kinds}),
                }
            }
            (None, Some(items @ Value::Object(_))) => self.write(items, depth - 1),
            _ => any_value_schema(),
        };
        if members.get("uniqueItems") == Some(&Value::Bool(true)) {
            words.add("No item twice.");
        }
        own.insert("items".into(), items);
    }
}

/// Writes exclusive bounds and `multipleOf`.
fn write_exclusive_bounds(
    members: &Map<String, Value>,
    types: &[&str],
    own: &mut Map<String, Value>,
    words: &mut DescriptionText,
) {
    let is_integer = types == ["integer"];
    for (keyword, bound, step, word) in [
        ("exclusiveMinimum", "minimum", 1, "Greater than"),
        ("exclusiveMaximum", "maximum", -1, "Less than"),
    ] {
        match members.get(keyword) {
            Some(Value::Number(number)) => match number
                .as_i64()
                .filter(|_| is_integer && !own.contains_key(bound))
            {
                Some(whole) => {
                    own.insert(bound.into(), whole.saturating_add(step).into());
                }
                None => words.add(&format!("{word} {number}.")),
            },
            // The form of draft 4.
            Some(Value::Bool(true)) => {
                if let Some(number) = own.get(bound) {
                    words.add(&format!("{word} {number}."));
                }
            }
            _ => {}
        }
    }
    if let Some(step) = members.get("multipleOf") {
        words.add(&format!("A multiple of {step}."));
    }
}

/// The sentences of a description.
struct DescriptionText(Vec<String>);

impl DescriptionText {
    fn add(&mut self, sentence: &str) {
        if sentence.chars().count() <= MAX_SENTENCE_CHARS {
            self.0.push(sentence.to_owned());
        }
    }
}

/// Returns a schema for an unrestricted value.
fn any_value_schema() -> Value {
    let of = |name: &&str| {
        if *name == "array" {
            json!({"type": name, "items": {"type": "string"}})
        } else {
            json!({"type": name})
        }
    };
    json!({"anyOf": ALL_TYPES.iter().map(of).collect::<Vec<_>>()})
}

/// Returns a schema in place of one that exceeds a limit.
fn truncated_schema() -> Value {
    json!({"type": "object", "description": "Nested further than this schema shows."})
}

/// Returns a schema in place of a reference to a definition that contains it.
fn recursive_schema(target: &str, definition: &Value) -> Value {
    let name = target.rsplit('/').next().unwrap_or_default();
    let kind = definition
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("object");
    let mut written = json!({"type": kind, "description": format!("The same again ({name}).")});
    if let (Some(members), "array") = (written.as_object_mut(), kind) {
        members.insert("items".into(), any_value_schema());
    }
    written
}

/// Returns the types of a schema that does not specify them.
fn implied_types(members: &Map<String, Value>) -> Vec<&'static str> {
    let has = |keywords: &[&str]| {
        keywords
            .iter()
            .any(|keyword| members.contains_key(*keyword))
    };
    match () {
        () if has(&["properties", "required", "additionalProperties"]) => vec!["object"],
        () if has(&["items", "prefixItems", "minItems", "maxItems"]) => vec!["array"],
        () if has(&["pattern", "format", "minLength", "maxLength"]) => vec!["string"],
        () if has(&[
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ]) =>
        {
            vec!["number"]
        }
        () => Vec::new(),
    }
}

/// Writes the values of an enumeration and returns their types. Only strings can be in an `enum`.
fn write_enumeration(
    own: &mut Map<String, Value>,
    words: &mut DescriptionText,
    listed: &[Value],
) -> Vec<&'static str> {
    let mut types: Vec<&'static str> = Vec::new();
    for name in listed.iter().map(type_name) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    let texts: Vec<Value> = listed
        .iter()
        .filter(|value| value.is_string())
        .cloned()
        .collect();
    if texts.is_empty() || types.iter().any(|name| !["string", "null"].contains(name)) {
        let told: Vec<String> = listed.iter().map(ToString::to_string).collect();
        words.add(&format!("One of: {}.", told.join(", ")));
    } else {
        own.insert("enum".into(), texts.into());
    }
    types
}

/// Adds the descriptions of the values to choose from.
fn describe_choices(words: &mut DescriptionText, branches: &[Value]) {
    for branch in branches {
        if let (Some(value), Some(text)) = (
            branch.get("const"),
            branch.get("description").and_then(Value::as_str),
        ) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            words.add(&format!("{value}: {text}"));
        }
    }
}

/// Merges a part of `allOf` into the schema of the same value.
fn merge_part(
    own: &mut Map<String, Value>,
    types: &mut Vec<&str>,
    words: &mut DescriptionText,
    part: Value,
) {
    let Value::Object(part) = part else { return };
    if types.is_empty() {
        types.extend(match part.get("type").and_then(Value::as_str) {
            Some("object") => Some("object"),
            Some("array") => Some("array"),
            Some("string") => Some("string"),
            Some("integer") => Some("integer"),
            Some("number") => Some("number"),
            Some("boolean") => Some("boolean"),
            _ => None,
        });
    }
    for (key, value) in part {
        match (key.as_str(), own.get_mut(&key), value) {
            ("type" | "anyOf", ..) => {}
            ("description", _, Value::String(text)) => words.add(&text),
            ("properties", Some(Value::Object(ours)), Value::Object(theirs)) => {
                for (name, schema) in theirs {
                    ours.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(ours)), Value::Array(theirs)) => {
                for name in theirs {
                    if !ours.contains(&name) {
                        ours.push(name);
                    }
                }
            }
            (_, None, value) => {
                own.insert(key, value);
            }
            _ => {}
        }
    }
}

/// Assembles a schema from its parts: with one type, or with alternatives that have one each.
fn assemble_schema(
    mut own: Map<String, Value>,
    types: &[&str],
    alternatives: Vec<Value>,
    words: &DescriptionText,
) -> Value {
    let description = (!words.0.is_empty()).then(|| words.0.join(" "));
    let mut written = match (types, alternatives.is_empty()) {
        ([], true) => match any_value_schema() {
            Value::Object(any) => {
                own.extend(any);
                own
            }
            _ => own,
        },
        ([only], true) => {
            own.insert("type".into(), (*only).into());
            own
        }
        ([only], false) if *only == "object" => {
            // The common part of all alternatives keeps its members, and the alternatives contain
            // only their own.
            own.insert("type".into(), (*only).into());
            own.insert("anyOf".into(), alternatives.into());
            own
        }
        (_, false) => Map::from_iter([("anyOf".to_owned(), Value::from(alternatives))]),
        (several, true) => {
            let of_type = |name: &&str| {
                let own = own
                    .iter()
                    .filter(|(key, _)| applies_to_type(key, name))
                    .map(|(key, value)| (key.clone(), value.clone()));
                let mut own: Map<String, Value> = own.collect();
                own.insert("type".into(), (*name).into());
                Value::Object(own)
            };
            Map::from_iter([(
                "anyOf".to_owned(),
                several.iter().map(of_type).collect::<Vec<_>>().into(),
            )])
        }
    };
    if let Some(text) = description {
        written.insert("description".into(), text.into());
    }
    Value::Object(written)
}

/// Returns whether a keyword applies to values of a type.
fn applies_to_type(keyword: &str, name: &str) -> bool {
    match keyword {
        "properties" | "required" => name == "object",
        "items" | "minItems" | "maxItems" => name == "array",
        "minLength" | "maxLength" | "pattern" | "format" | "enum" => name == "string",
        "minimum" | "maximum" => matches!(name, "integer" | "number"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
