//! Notes on the parts of a schema that are valid, but that some clients do not support.

use serde_json::Value;
use toolbay_model::text::clean_line;

use super::keywords::for_each_subschema;

/// Maximum number of notes on one schema.
const MAX_NOTES: usize = 8;

/// Maximum size of a quoted pattern or name, in bytes.
const MAX_QUOTED_BYTES: usize = 80;

/// Returns compatibility notes on a schema for its author. `output` is true for an output schema,
/// which clients use to check results.
pub fn compatibility_notes(schema: &Value, output: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let (mut open, mut patterns, mut formats, mut words) = (vec![schema], Vec::new(), Vec::new(), Vec::new());
    while let Some(schema) = open.pop() {
        let Some(members) = schema.as_object() else { continue };
        let own = members.get("pattern").and_then(Value::as_str);
        let names = members.get("patternProperties").and_then(Value::as_object);
        patterns.extend(own.into_iter().chain(names.into_iter().flat_map(|names| names.keys().map(String::as_str))));
        formats.extend(members.get("format").and_then(Value::as_str));
        let properties = members.get("properties").and_then(Value::as_object).filter(|_| !output);
        words.extend(
            properties
                .into_iter()
                .flat_map(|own| own.keys().map(String::as_str))
                .filter(|name| !is_portable_name(name)),
        );
        for_each_subschema(members, &mut |_, schema| open.push(schema));
    }
    patterns.retain(|pattern| uncommon_feature(pattern).is_some());
    for list in [&mut patterns, &mut formats, &mut words] {
        list.sort_unstable();
        list.dedup();
    }
    notes.extend(patterns.iter().filter_map(|pattern| {
        let why = match uncommon_feature(pattern)? {
            UncommonFeature::Property => "validators in Python refuse the pattern PATTERN, because they have no \"\\p\"",
            UncommonFeature::Lookaround => "validators in Rust, and Pydantic with them, refuse the pattern PATTERN, because they do not look around or back",
        };
        Some(why.replace("PATTERN", &format!("{:?}", clean_line(pattern, MAX_QUOTED_BYTES))))
    }));
    notes.extend(words.iter().map(|name| {
        let name = clean_line(name, MAX_QUOTED_BYTES);
        format!("some clients and APIs refuse the argument {name:?}: they take letters (A-Z a-z), and after the first also 0-9 _ -, 64 at most")
    }));
    if output {
        notes.extend(formats.iter().map(|format| {
            let format = clean_line(format, MAX_QUOTED_BYTES);
            format!("some clients refuse results that do not have the format {format:?}, which Toolbay does not check")
        }));
    }
    notes.truncate(MAX_NOTES);
    notes
}

/// Returns whether every client and model API accepts an argument with this name.
fn is_portable_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
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
    let (mut escaped, mut in_class) = (false, false);
    for (at, c) in pattern.char_indices() {
        if escaped {
            escaped = false;
            match c {
                'p' | 'P' => return Some(UncommonFeature::Property),
                'k' | '1'..='9' if !in_class => return Some(UncommonFeature::Lookaround),
                _ => {}
            }
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let group = pattern.get(at..).unwrap_or_default();
                if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| group.starts_with(look)) {
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
    fn what_not_every_engine_has_is_found() {
        for look in ["(?!a)b", "a(?=b)", "(?<=a)b", "(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>", r"[(](?!a)"] {
            assert_eq!(uncommon_feature(look), Some(UncommonFeature::Lookaround), "{look}");
        }
        for property in [r"\p{Lu}", r"[\P{L}]"] {
            assert_eq!(uncommon_feature(property), Some(UncommonFeature::Property), "{property}");
        }
        for common in ["(?<n>a)", "(?:a)", r"\(?!a", r"[(?=]", r"\\1", r"[\1]", r"\d\0", "a{1,2}"] {
            assert_eq!(uncommon_feature(common), None, "{common}");
        }
    }

    #[test]
    fn each_thing_is_noted_once() {
        let text = json!({"type": "string", "pattern": "^\\p{Lu}$", "format": "date"});
        let schema = json!({
            "properties": {"a": text, "b": text, "c": {"pattern": "\\\\p{a}"}, "pattern": {"type": "string"}},
            "patternProperties": {"^\\P{L}": {}},
            "default": {"pattern": "\\p{L}"},
        });
        assert_eq!(compatibility_notes(&schema, false).len(), 2);
        assert_eq!(compatibility_notes(&schema, true).len(), 3);
        let names = json!({"properties": {"_a": {}, "$b": {}, "a b": {}, "é": {}, "c_D-1": {"properties": {"1": {}}}}});
        assert_eq!((compatibility_notes(&names, false).len(), compatibility_notes(&names, true).len()), (5, 0));
        let many = json!({"anyOf": (0..20).map(|n| json!({"format": format!("f{n}")})).collect::<Vec<_>>()});
        assert_eq!(compatibility_notes(&many, true).len(), MAX_NOTES);
    }
}
