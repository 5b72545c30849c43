//! Describes members and items that a schema forbids, so that an author learns what was wrong and
//! what would be right.
//!
//! For these, the library reports only that a schema `false` does not allow a value.

use std::fmt::Write as _;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use toolbay_model::SchemaViolation;
use toolbay_model::text::clean_line;

use super::keywords::is_schema_map;

/// Maximum number of names in a message, and the maximum size of each, in bytes.
const MAX_NAMES: usize = 8;
const MAX_NAME_BYTES: usize = 60;

/// Maximum size of a message and of a pointer, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;

/// Describes the error of a value for which the schema allows nothing. Returns `None` for any other
/// error.
pub(super) fn describe_forbidden(
    schema: &Value,
    instance: &Value,
    error: &ValidationError<'_>,
) -> Option<SchemaViolation> {
    let path = error.schema_path().as_str();
    let pointer = error.instance_path().as_str();
    let is_false = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let owner = parent_schema(schema, path)?;
            let names: Vec<&str> = unexpected
                .iter()
                .map(String::as_str)
                .take(MAX_NAMES)
                .collect();
            return Some(violation(
                pointer,
                &unexpected_members(&names, unexpected.len(), owner),
            ));
        }
        ValidationErrorKind::AdditionalItems { limit } => {
            return Some(violation(
                pointer,
                &too_many_items(instance.pointer(pointer)?, *limit),
            ));
        }
        ValidationErrorKind::FalseSchema => true,
        ValidationErrorKind::Not { schema } if schema.as_object().is_some_and(Map::is_empty) => {
            false
        }
        _ => return None,
    };
    let path = if is_false {
        path
    } else {
        path.strip_suffix("/not")?
    };
    let (keyword, name) = last_keyword(path);
    let (owner_pointer, last_segment) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    Some(match (keyword, &name) {
        // The library reports a boolean `false` at the object, and a schema at the member.
        ("additionalProperties" | "propertyNames", _) if is_false => {
            let members = instance.pointer(pointer)?.as_object()?;
            let names: Vec<&str> = members.keys().map(String::as_str).take(MAX_NAMES).collect();
            violation(
                pointer,
                &unexpected_members(&names, members.len(), &Map::new()),
            )
        }
        ("additionalProperties", _) => {
            let owner = parent_schema(schema, path)?;
            violation(
                owner_pointer,
                &unexpected_members(&[unescape(last_segment).as_str()], 1, owner),
            )
        }
        ("items" | "prefixItems" | "additionalItems", name) => {
            let index: usize = last_segment.parse().ok()?;
            let limit = match name {
                Some(_) => index,
                None => prefix_length(parent_schema(schema, path)?).min(index),
            };
            violation(
                owner_pointer,
                &too_many_items(instance.pointer(owner_pointer)?, limit),
            )
        }
        ("properties", _) => violation(pointer, "this member is not allowed; leave it out"),
        ("patternProperties", Some(pattern)) => {
            let pattern = clean_line(pattern, MAX_NAME_BYTES);
            violation(
                pointer,
                &format!("no member may have a name that matches \"{pattern}\"; leave it out"),
            )
        }
        ("dependentSchemas" | "dependencies", Some(name)) => violation(
            pointer,
            &format!("{} is not allowed; leave it out", quote_name(name)),
        ),
        _ => violation(pointer, "no value is allowed here"),
    })
}

fn violation(pointer: &str, message: &str) -> SchemaViolation {
    SchemaViolation {
        pointer: clean_line(pointer, MAX_MESSAGE_BYTES),
        message: clean_line(message, MAX_MESSAGE_BYTES),
    }
}

/// Describes members that an object does not allow. `names` are the first of `count`, and `owner`
/// is the schema of the object.
fn unexpected_members(names: &[&str], count: usize, owner: &Map<String, Value>) -> String {
    let mut message = list_names(names.iter().copied(), count);
    let verb = if count == 1 { "is" } else { "are" };
    let _ = write!(message, " {verb} not allowed: this object takes ");
    let properties = owner
        .get("properties")
        .and_then(Value::as_object)
        .filter(|properties| !properties.is_empty());
    let patterns = owner
        .get("patternProperties")
        .and_then(Value::as_object)
        .filter(|patterns| !patterns.is_empty());
    match properties {
        Some(properties) => {
            let _ = write!(
                message,
                "only {}",
                list_names(properties.keys().map(String::as_str), properties.len())
            );
        }
        None if patterns.is_some() => message.push_str("only"),
        None => message.push_str("no members"),
    }
    if let Some(patterns) = patterns {
        let conjunction = if properties.is_some() { " and" } else { "" };
        let sources = list_names(patterns.keys().map(String::as_str), patterns.len());
        let _ = write!(message, "{conjunction} names that match {sources}");
    }
    message
}

/// Describes an array with too many items.
fn too_many_items(array: &Value, limit: usize) -> String {
    let item_count = array.as_array().map_or(0, Vec::len);
    let item_noun = |count: usize| if count == 1 { "item" } else { "items" };
    format!(
        "has {item_count} {}, but at most {limit} {} allowed",
        item_noun(item_count),
        if limit == 1 { "is" } else { "are" }
    )
}

/// Lists the first of `count` names.
fn list_names<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    let mut list = names
        .take(MAX_NAMES)
        .map(quote_name)
        .collect::<Vec<_>>()
        .join(", ");
    if count > MAX_NAMES {
        let _ = write!(list, " and {} more", count - MAX_NAMES);
    }
    list
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", clean_line(name, MAX_NAME_BYTES))
}

/// Returns the schema that contains the keyword at the end of a path.
fn parent_schema<'a>(schema: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    schema.pointer(path.rsplit_once('/')?.0)?.as_object()
}

/// Returns the number of items that have separate schemas.
fn prefix_length(schema: &Map<String, Value>) -> usize {
    let prefix = schema.get("prefixItems").or_else(|| schema.get("items"));
    prefix.and_then(Value::as_array).map_or(0, Vec::len)
}

/// Returns the last keyword in the path of a schema, and the name or number of the schema in it.
fn last_keyword(path: &str) -> (&str, Option<String>) {
    let mut segments = path.split('/').skip(1).peekable();
    let mut last = ("", None);
    while let Some(keyword) = segments.next() {
        let is_number = |segment: &&str| segment.bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_schema_map(keyword) {
            segments.next()
        } else {
            segments.next_if(is_number)
        };
        last = (keyword, name.map(unescape));
    }
    last
}

/// Returns the name that a segment of a JSON Pointer contains.
fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;
