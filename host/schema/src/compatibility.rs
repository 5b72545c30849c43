//! Notes on the parts of a schema that are valid, but that some clients do not support.

use serde_json::{Number, Value};
use toolbay_model::text::clean_line;

use super::client_schema::client_schema;
use super::keywords::for_each_subschema;

/// Maximum number of notes on one schema.
const MAX_NOTES: usize = 8;

/// Maximum size of a quoted pattern or name, in bytes.
const MAX_QUOTED_BYTES: usize = 80;

/// The members that every object has in JavaScript. Validators there do not distinguish them from
/// members of a result.
const JAVASCRIPT_MEMBERS: [&str; 12] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
];

/// Returns compatibility notes on a schema for its author. `is_output` is true for an output
/// schema, which clients use to check results.
pub fn compatibility_notes(schema: &Value, is_output: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let mut pending = vec![schema];
    let mut patterns = Vec::new();
    let mut formats = Vec::new();
    let mut unportable_names = Vec::new();
    let (mut inexact_steps, mut javascript_names): (Vec<String>, Vec<&str>) =
        (Vec::new(), Vec::new());
    while let Some(schema) = pending.pop() {
        let Some(members) = schema.as_object() else {
            continue;
        };
        let value_pattern = members.get("pattern").and_then(Value::as_str);
        let names = members.get("patternProperties").and_then(Value::as_object);
        patterns.extend(
            value_pattern.into_iter().chain(
                names
                    .into_iter()
                    .flat_map(|names| names.keys().map(String::as_str)),
            ),
        );
        formats.extend(members.get("format").and_then(Value::as_str));
        let step = members.get("multipleOf").and_then(Value::as_number);
        inexact_steps.extend(step.filter(|step| is_inexact(step)).map(Number::to_string));
        let properties = members.get("properties").and_then(Value::as_object);
        let names = properties
            .into_iter()
            .flat_map(|own| own.keys().map(String::as_str));
        if is_output {
            javascript_names.extend(names.filter(|name| JAVASCRIPT_MEMBERS.contains(name)));
        } else {
            unportable_names.extend(names.filter(|name| !is_portable_name(name)));
        }
        for_each_subschema(members, &mut |_, schema| pending.push(schema));
    }
    patterns.retain(|pattern| uncommon_feature(pattern).is_some());
    for list in [
        &mut patterns,
        &mut formats,
        &mut unportable_names,
        &mut javascript_names,
    ] {
        list.sort_unstable();
        list.dedup();
    }
    inexact_steps.sort_unstable();
    inexact_steps.dedup();
    if has_identifiers(&client_schema(schema)) {
        notes.push(
            "clients that compile all schemas of a list lose the list if two have the same $id; leave $id out, and \
             refer to definitions with #/$defs/NAME"
                .to_owned(),
        );
    }
    notes.extend(patterns.iter().filter_map(|pattern| {
        let note = match uncommon_feature(pattern)? {
            UncommonFeature::Property => "validators in Python refuse the pattern PATTERN, because they have no \"\\p\"",
            UncommonFeature::Lookaround => "validators in Rust, and Pydantic with them, refuse the pattern PATTERN, because they have neither lookaround nor backreferences",
        };
        Some(note.replace("PATTERN", &format!("{:?}", clean_line(pattern, MAX_QUOTED_BYTES))))
    }));
    notes.extend(unportable_names.iter().map(|name| {
        let name = clean_line(name, MAX_QUOTED_BYTES);
        format!("some clients and APIs refuse the argument {name:?}: they take letters (A-Z a-z), and after the first also 0-9 _ -, 64 at most")
    }));
    notes.extend(inexact_steps.iter().map(|step| {
        format!(
            "clients in JavaScript and Python refuse many multiples of {step}, because they divide in binary floating \
             point; use whole numbers of a smaller unit, or a string with a pattern"
        )
    }));
    notes.extend(javascript_names.iter().map(|name| {
        format!(
            "clients in JavaScript take the member {name:?} for a part of the language, and can refuse results or lose \
             it; give it another name"
        )
    }));
    if is_output {
        notes.extend(formats.iter().map(|format| {
            let format = clean_line(format, MAX_QUOTED_BYTES);
            format!("some clients refuse results that do not have the format {format:?}, which Toolbay does not check")
        }));
    }
    notes.truncate(MAX_NOTES);
    notes
}

/// Returns whether a step has no exact form in binary floating point: it is not a multiple of
/// 1/1024.
fn is_inexact(step: &Number) -> bool {
    !step
        .as_f64()
        .is_some_and(|step| (step * 1024.0).fract() == 0.0)
}

/// Returns whether a schema, or a part of it, has an `$id`.
fn has_identifiers(schema: &Value) -> bool {
    let mut pending = vec![schema];
    while let Some(members) = pending.pop().map(Value::as_object) {
        let Some(members) = members else { continue };
        if members.get("$id").is_some_and(Value::is_string) {
            return true;
        }
        for_each_subschema(members, &mut |_, schema| pending.push(schema));
    }
    false
}

/// Returns whether every client and model API accepts an argument with this name.
fn is_portable_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A pattern feature that some engines do not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UncommonFeature {
    /// `\p{…}` or `\P{…}`.
    Property,
    /// A look-around or a back reference.
    Lookaround,
}

/// Returns the first feature in a pattern that not every engine supports.
pub(super) fn uncommon_feature(pattern: &str) -> Option<UncommonFeature> {
    let mut is_escaped = false;
    let mut is_in_class = false;
    for (at, c) in pattern.char_indices() {
        if is_escaped {
            is_escaped = false;
            match c {
                'p' | 'P' => return Some(UncommonFeature::Property),
                'k' | '1'..='9' if !is_in_class => return Some(UncommonFeature::Lookaround),
                _ => {}
            }
            continue;
        }
        match c {
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class => {
                let group = pattern.get(at..).unwrap_or_default();
                if ["(?=", "(?!", "(?<=", "(?<!"]
                    .iter()
                    .any(|look| group.starts_with(look))
                {
                    return Some(UncommonFeature::Lookaround);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn uncommon_pattern_features_are_detected() {
        for look in [
            "(?!a)b",
            "a(?=b)",
            "(?<=a)b",
            "(?<!a)b",
            r"(a)\1",
            r"(?<n>a)\k<n>",
            r"[(](?!a)",
        ] {
            assert_eq!(
                uncommon_feature(look),
                Some(UncommonFeature::Lookaround),
                "{look}"
            );
        }
        for property in [r"\p{Lu}", r"[\P{L}]"] {
            assert_eq!(
                uncommon_feature(property),
                Some(UncommonFeature::Property),
                "{property}"
            );
        }
        for common in [
            "(?<n>a)", "(?:a)", r"\(?!a", r"[(?=]", r"\\1", r"[\1]", r"\d\0", "a{1,2}",
        ] {
            assert_eq!(uncommon_feature(common), None, "{common}");
        }
    }

    #[test]
    fn each_note_appears_once() {
        let text = json!({"type": "string", "pattern": "^\\p{Lu}$", "format": "date"});
        let schema = json!({
            "properties": {"a": text, "b": text, "c": {"pattern": "\\\\p{a}"}, "pattern": {"type": "string"}},
            "patternProperties": {"^\\P{L}": {}},
            "default": {"pattern": "\\p{L}"},
        });
        assert_eq!(compatibility_notes(&schema, false).len(), 2);
        assert_eq!(compatibility_notes(&schema, true).len(), 3);
        let odd = json!({"properties": {"_a": {}, "$b": {}, "a b": {}, "é": {}, "c_D-1": {"properties": {"1": {}}}}});
        assert_eq!(
            (
                compatibility_notes(&odd, false).len(),
                compatibility_notes(&odd, true).len()
            ),
            (5, 0)
        );
        let proto: Value =
            serde_json::from_str(r#"{"properties":{"__proto__":{},"toString":{},"x":{}}}"#)
                .unwrap();
        assert_eq!(
            (
                compatibility_notes(&proto, true).len(),
                compatibility_notes(&proto, false).len()
            ),
            (2, 1)
        );
        let steps =
            json!({"a": {"multipleOf": 0.01}, "b": {"multipleOf": 0.5}, "c": {"multipleOf": 10}});
        let price = json!({"properties": steps});
        assert_eq!(
            (
                compatibility_notes(&price, true).len(),
                compatibility_notes(&price, false).len()
            ),
            (1, 1)
        );
        let named = json!({"$id": "https://x/", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$id": "b"}}});
        assert_eq!(compatibility_notes(&named, true).len(), 0);
        let named = json!({"properties": {"a": {"$ref": "b"}, "b": {"$id": "b"}}});
        assert_eq!(compatibility_notes(&named, true).len(), 1);
        let many = json!({"anyOf": (0..20).map(|n| json!({"format": format!("f{n}")})).collect::<Vec<_>>()});
        assert_eq!(compatibility_notes(&many, true).len(), MAX_NOTES);
    }
}
