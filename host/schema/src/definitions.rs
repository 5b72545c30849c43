//! Moves the definitions of a schema to the only place in which every client finds them: `$defs` at
//! the top.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keywords::{count_values, for_each_subschema, for_each_subschema_mut};

/// The keyword of the definitions.
const DEFINITIONS_KEYWORD: &str = "$defs";

/// Maximum number of values in the definitions that are copied to the top: the first constant times
/// the number of values in the schema, plus the second one. A definition within another is copied
/// with it.
const MAX_GROWTH_FACTOR: usize = 2;
const GROWTH_ALLOWANCE: usize = 1_000;

/// Members of the root that belong to the document, not to the value that it describes.
const DOCUMENT_KEYWORDS: [&str; 5] = ["$schema", "$id", "id", DEFINITIONS_KEYWORD, "definitions"];

/// Moves the targets of references into `$defs` at the top. A schema remains unchanged if its
/// references depend on their position (`$dynamicRef`, or an `$id` below the root), or if it would
/// become much larger.
pub(super) fn hoist_definitions(schema: &mut Value) {
    if let Some(hoisted) = with_hoisted_definitions(schema) {
        *schema = hoisted;
    }
}

fn with_hoisted_definitions(schema: &Value) -> Option<Value> {
    let root = schema.as_object()?;
    let mut references = ReferenceTargets::default();
    references.collect(root, true);
    if references.is_position_dependent {
        return None;
    }
    let mut top = root
        .get(DEFINITIONS_KEYWORD)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut names = BTreeMap::new();
    let mut remaining_values = MAX_GROWTH_FACTOR * count_values(schema) + GROWTH_ALLOWANCE;
    for target in references.targets {
        let fragment = target.strip_prefix('#')?;
        if names.contains_key(target) || is_at_top(fragment) {
            continue;
        }
        let Some((name, definition)) = copy_definition(schema, fragment, &references.anchors)
        else {
            continue;
        };
        remaining_values = remaining_values.checked_sub(count_values(&definition))?;
        let name = unused_name(&name, &top);
        names.insert(target.to_owned(), format!("#/{DEFINITIONS_KEYWORD}/{name}"));
        top.insert(name, definition);
    }
    if names.is_empty() {
        return None;
    }
    let mut root = root.clone();
    root.remove("definitions");
    root.insert(DEFINITIONS_KEYWORD.into(), top.into());
    let mut hoisted = Value::Object(root);
    rewrite_references(&mut hoisted, &names);
    Some(hoisted)
}

/// The targets of the references in a schema.
#[derive(Default)]
struct ReferenceTargets<'a> {
    targets: Vec<&'a str>,
    anchors: BTreeMap<&'a str, &'a Value>,
    /// True if references depend on their position.
    is_position_dependent: bool,
}

impl<'a> ReferenceTargets<'a> {
    fn collect(&mut self, members: &'a Map<String, Value>, is_root: bool) {
        let id = members
            .get("$id")
            .or_else(|| members.get("id"))
            .and_then(Value::as_str);
        self.is_position_dependent |= members.contains_key("$dynamicRef")
            || members.contains_key("$recursiveRef")
            || id.is_some_and(|_| !is_root);
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            // Any other target refers to the document by its `$id`.
            self.is_position_dependent |= !target.starts_with('#');
            self.targets.push(target);
        }
        for_each_subschema(members, &mut |_, schema| {
            if let Some(members) = schema.as_object() {
                if let Some(anchor) = members.get("$anchor").and_then(Value::as_str) {
                    self.anchors.insert(anchor, schema);
                }
                self.collect(members, false);
            }
        });
    }
}

/// Returns whether a JSON Pointer leads to a definition at the top.
fn is_at_top(pointer: &str) -> bool {
    let name = pointer.strip_prefix("/$defs/");
    name.is_some_and(|name| !name.contains(['/', '%', '~']))
}

/// Returns a name for the schema at `target`, a JSON Pointer or an anchor, and a copy of the
/// schema.
fn copy_definition(
    root: &Value,
    target: &str,
    anchors: &BTreeMap<&str, &Value>,
) -> Option<(String, Value)> {
    if target.is_empty() {
        let mut copy = root.clone();
        copy.as_object_mut()?
            .retain(|key, _| !DOCUMENT_KEYWORDS.contains(&key.as_str()));
        let title = root.get("title").and_then(Value::as_str).unwrap_or("root");
        return Some((title.to_owned(), without_anchors(copy)));
    }
    let decoded = percent_encoding::percent_decode_str(target)
        .decode_utf8()
        .ok()?;
    let definition = if decoded.starts_with('/') {
        root.pointer(&decoded)
    } else {
        anchors.get(&*decoded).copied()
    }?;
    if !definition.is_object() && !definition.is_boolean() {
        return None;
    }
    let name = decoded
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .replace("~1", "_")
        .replace("~0", "_");
    Some((name, without_anchors(definition.clone())))
}

/// Removes the anchors from a copy: a document may contain each anchor only once.
fn without_anchors(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.remove("$anchor");
        for_each_subschema_mut(members, &mut |_, schema| {
            *schema = without_anchors(schema.take());
        });
    }
    schema
}

/// Returns a name that is not taken, with characters that need no escape in a reference.
fn unused_name(preferred: &str, definitions: &Map<String, Value>) -> String {
    let replace_special = |c: char| {
        if c.is_ascii_alphanumeric() || "_-.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let cleaned: String = preferred.chars().take(64).map(replace_special).collect();
    let base_name = if cleaned.is_empty() {
        "definition".to_owned()
    } else {
        cleaned
    };
    let numbered = (2..).map(|number| format!("{base_name}_{number}"));
    std::iter::once(base_name.clone())
        .chain(numbered)
        .find(|name| !definitions.contains_key(name))
        .unwrap_or(base_name)
}

fn rewrite_references(schema: &mut Value, names: &BTreeMap<String, String>) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::String(target)) = members.get_mut("$ref")
        && let Some(name) = names.get(target)
    {
        target.clone_from(name);
    }
    for_each_subschema_mut(members, &mut |_, schema| rewrite_references(schema, names));
}
