//! Rewrites a schema for clients. The result accepts the same values as the plugin's schema, but
//! uses only keywords that every validator and every model API supports.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::client_keywords::{ClientKeywords, rewrite_identifiers};
use super::definitions::hoist_definitions;
use super::keywords::{can_be_boolean, for_each_subschema_mut};

/// Maximum number of values in an `enum` that is generated from alternatives.
const MAX_CHOICES: usize = 1_000;

/// Returns an equivalent schema for clients:
///
/// - `items: false` becomes a `maxItems`. Validators of draft 7 ignore `prefixItems` and would
///   reject every item.
/// - A subschema `true` or `false` becomes `{}` or `{"not": {}}`. Clients of revisions before 2026
///   require this of properties.
/// - A choice between constants also gets their `type` and `enum`. Adapters for models read these
///   instead of `const`.
/// - A constant, or an enumeration of values of one type, also gets this `type`. Some adapters
///   reject schemas without it.
/// - The targets of references are in `$defs` at the top.
/// - Keywords that validators of clients refuse, or that the dialect of the schema ignores, are
///   removed or rewritten.
pub fn client_schema(schema: &Value) -> Value {
    let draft = Draft::default().detect(schema);
    let mut schema = schema.clone();
    rewrite_identifiers(&mut schema, draft);
    hoist_definitions(&mut schema);
    let keywords = ClientKeywords::new(&schema, draft);
    rewrite_for_clients(&mut schema, &keywords, true);
    schema
}

fn rewrite_for_clients(schema: &mut Value, keywords: &ClientKeywords, is_root: bool) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    keywords.rewrite(members, is_root);
    if members.get("items") == Some(&Value::Bool(false)) {
        members.remove("items");
        let prefix_items = members
            .get("prefixItems")
            .filter(|_| keywords.has_prefix_items());
        let prefix_count = prefix_items.and_then(Value::as_array).map_or(0, Vec::len);
        let prefix_length = f64::from(u32::try_from(prefix_count).unwrap_or(u32::MAX));
        let is_less = |max_items: f64| max_items < prefix_length;
        if !members
            .get("maxItems")
            .and_then(Value::as_f64)
            .is_some_and(is_less)
        {
            members.insert("maxItems".into(), prefix_count.into());
        }
    }
    add_type_and_values(members);
    for_each_subschema_mut(members, &mut |keyword, schema| match schema {
        Value::Bool(true) if !can_be_boolean(keyword) => *schema = json!({}),
        Value::Bool(false) if !can_be_boolean(keyword) => *schema = json!({"not": {}}),
        schema => rewrite_for_clients(schema, keywords, false),
    });
}

/// Adds the type of constants, and the values of a choice between constants.
fn add_type_and_values(members: &mut Map<String, Value>) {
    let constant = members.get("const").map(std::slice::from_ref);
    if let Some(name) = constant
        .or_else(|| members.get("enum")?.as_array().map(Vec::as_slice))
        .and_then(common_type)
    {
        members.entry("type").or_insert_with(|| name.into());
    }
    if members.contains_key("enum") {
        return;
    }
    let choices = ["oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| members.get(key).and_then(choice_values));
    let Some(values) = choices else { return };
    if let Some(name) = common_type(&values) {
        members.entry("type").or_insert_with(|| name.into());
    }
    members.insert("enum".into(), values.into());
}

/// Returns the type that all of these values have.
fn common_type(values: &[Value]) -> Option<&'static str> {
    let first = type_name(values.first()?);
    values
        .iter()
        .all(|value| type_name(value) == first)
        .then_some(first)
}

/// Returns the values of a choice, if each branch lists its values.
pub(super) fn choice_values(branches: &Value) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for branch in branches
        .as_array()
        .filter(|branches| !branches.is_empty())?
    {
        match (branch.get("const"), branch.get("enum")) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(Value::Array(listed))) => values.extend_from_slice(listed),
            _ => return None,
        }
        if values.len() > MAX_CHOICES {
            return None;
        }
    }
    if values.is_empty() {
        return None;
    }
    // The values of `enum` should be unique.
    let mut unique: Vec<Value> = Vec::with_capacity(values.len());
    let mut seen = std::collections::HashSet::new();
    unique.extend(
        values
            .into_iter()
            .filter(|value| seen.insert(value.to_string())),
    );
    Some(unique)
}

/// Returns the name of a value's type in JSON Schema.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
