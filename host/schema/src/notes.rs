//! What is allowed in a schema, and what some clients do not read nevertheless.

use serde_json::Value;
use toolbay_model::text::line;

use super::keywords::each;

/// Most notes about one schema.
const MOST: usize = 8;

/// How much of a pattern or the name of a format is quoted, in bytes.
const QUOTED: usize = 80;

/// What authors may want to know of a schema: an output schema if `output`, which clients check results against.
pub fn notes(schema: &Value, output: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let (mut open, mut patterns, mut formats) = (vec![schema], Vec::new(), Vec::new());
    while let Some(schema) = open.pop() {
        let Some(members) = schema.as_object() else { continue };
        let own = members.get("pattern").and_then(Value::as_str);
        let names = members.get("patternProperties").and_then(Value::as_object);
        patterns.extend(own.into_iter().chain(names.into_iter().flat_map(|names| names.keys().map(String::as_str))));
        formats.extend(members.get("format").and_then(Value::as_str));
        each(members, &mut |_, schema| open.push(schema));
    }
    patterns.retain(|pattern| has_property(pattern));
    for list in [&mut patterns, &mut formats] {
        list.sort_unstable();
        list.dedup();
    }
    notes.extend(patterns.iter().map(|pattern| {
        let pattern = line(pattern, QUOTED);
        format!("validators in Python refuse the pattern {pattern:?}, because they have no \"\\p\"")
    }));
    if output {
        notes.extend(formats.iter().map(|format| {
            let format = line(format, QUOTED);
            format!("some clients refuse results that do not have the format {format:?}, which Toolbay does not check")
        }));
    }
    notes.truncate(MOST);
    notes
}

/// Whether a pattern has `\p{…}` or `\P{…}`.
fn has_property(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let is_property = escaped && matches!(c, 'p' | 'P');
        escaped = !escaped && c == '\\';
        is_property
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_thing_is_noted_once() {
        let text = json!({"type": "string", "pattern": "^\\p{Lu}$", "format": "date"});
        let schema = json!({
            "properties": {"a": text, "b": text, "c": {"pattern": "\\\\p{a}"}, "pattern": {"type": "string"}},
            "patternProperties": {"^\\P{L}": {}},
            "default": {"pattern": "\\p{L}"},
        });
        assert_eq!(notes(&schema, false).len(), 2);
        assert_eq!(notes(&schema, true).len(), 3);
        let many = json!({"anyOf": (0..20).map(|n| json!({"format": format!("f{n}")})).collect::<Vec<_>>()});
        assert_eq!(notes(&many, true).len(), MOST);
    }
}
