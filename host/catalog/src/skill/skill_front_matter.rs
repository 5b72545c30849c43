//! The front matter of a `SKILL.md`: YAML that clients receive as equivalent JSON.

use serde_json::{Map, Value};
use serde_saphyr::options::{MergeKeyPolicy, NonFiniteFloatPolicy};
use toolbay_model::text::{clean, clean_line, format_thousands};

use crate::plain::front_matter::{parse_yaml, split_front_matter};

/// Maximum size of the front matter, in bytes. Every client that lists skills receives it.
const MAX_FRONT_MATTER_BYTES: usize = 64 << 10;

/// Maximum number of values that aliases repeat.
const MAX_REPEATED_VALUES: usize = 200;

/// Maximum size of the front matter as JSON, in bytes. Aliases repeat the values to which they
/// refer.
const MAX_JSON_BYTES: usize = 4 * MAX_FRONT_MATTER_BYTES;

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 32;

/// Maximum length of a name, in characters (from the Agent Skills specification, like the next
/// two).
const MAX_NAME_CHARS: usize = 64;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Maximum length of `compatibility`, in characters.
const MAX_COMPATIBILITY_CHARS: usize = 500;

/// Maximum length of a quoted text in an error, in bytes.
const MAX_SHOWN_TEXT_BYTES: usize = 100;

/// The front matter of a `SKILL.md`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SkillFrontMatter {
    /// The name, which equals that of the folder.
    pub(crate) name: String,
    /// The purpose of the skill and when to use it.
    pub(crate) description: String,
    /// All fields, in the order of the file.
    pub(crate) fields: Map<String, Value>,
}

impl SkillFrontMatter {
    /// Parses the front matter of the `SKILL.md` of a skill in the folder `folder`.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem. It begins with the line number and a colon, or
    /// with a space.
    pub(crate) fn parse(text: &str, folder: &str) -> Result<Self, String> {
        let yaml = extract_yaml(text)?;
        let fields: Map<String, Value> =
            parse_yaml(yaml, yaml_options()).map_err(|(line, why)| format!("{line}: {why}"))?;
        check_fields(&fields, folder).map_err(|why| format!(" {why}"))?;
        let description = text_field(&fields, "description")
            .unwrap_or_default()
            .to_owned();
        Ok(Self {
            name: folder.to_owned(),
            description,
            fields,
        })
    }
}

/// Returns the YAML front matter of a file, which is required and must not be empty.
fn extract_yaml(text: &str) -> Result<&str, String> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !body.starts_with("---\n") && !body.starts_with("---\r\n") {
        return Err(
            "1: it must begin with a line \"---\", the name and the description of the skill"
                .to_owned(),
        );
    }
    let (yaml, _) = split_front_matter(text).map_err(|(line, why)| format!("{line}: {why}"))?;
    let yaml = yaml.unwrap_or_default();
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        let [length, most] =
            [yaml.len(), MAX_FRONT_MATTER_BYTES].map(|n| format_thousands(n as u64));
        return Err(format!(
            "1: its front matter has {length} bytes, but at most {most} are allowed"
        ));
    }
    if yaml.trim().is_empty() {
        return Err("1: its front matter has no name".to_owned());
    }
    Ok(yaml)
}

/// Returns the options for YAML 1.2 with the types of its core schema. Clients that compare the
/// YAML with the JSON parse it in the same way. YAML that parsers read in different ways is
/// rejected.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED_VALUES },
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_FRONT_MATTER_BYTES,
            max_documents: 1,
            max_total_scalar_bytes: MAX_JSON_BYTES,
        },
    }
}

/// Checks the requirements of the Agent Skills specification.
fn check_fields(fields: &Map<String, Value>, folder: &str) -> Result<(), String> {
    let value = Value::Object(fields.clone());
    if value.to_string().len() > MAX_JSON_BYTES {
        return Err(format!(
            "its front matter is larger than {} bytes as JSON",
            format_thousands(MAX_JSON_BYTES as u64)
        ));
    }
    if !is_clean(&value) {
        return Err("its front matter contains control characters: remove them".to_owned());
    }
    let Some(name) = optional_text(fields, "name")? else {
        return Err("its front matter has no name".to_owned());
    };
    if !is_skill_name(name) {
        let name = clean_line(name, MAX_SHOWN_TEXT_BYTES);
        return Err(format!("its name is {name:?}, but {NAME_RULE}"));
    }
    if name != folder {
        let folder = clean_line(folder, MAX_SHOWN_TEXT_BYTES);
        return Err(format!(
            "its name is {name:?}, but its folder is called {folder:?}: rename one of them"
        ));
    }
    match optional_text(fields, "description")? {
        Some(description) if !description.trim().is_empty() => {
            check_length(description, MAX_DESCRIPTION_CHARS, "description")?;
        }
        _ => return Err("its front matter has no description".to_owned()),
    }
    if let Some(compatibility) = optional_text(fields, "compatibility")? {
        check_length(compatibility, MAX_COMPATIBILITY_CHARS, "compatibility")?;
    }
    optional_text(fields, "license")?;
    optional_text(fields, "allowed-tools")?;
    match fields.get("metadata") {
        None => Ok(()),
        Some(Value::Object(metadata)) => {
            match metadata.iter().find(|(_, value)| !value.is_string()) {
                None => Ok(()),
                Some((key, _)) => Err(format!(
                    "metadata.{} must be a text: put it in quotes",
                    clean_line(key, MAX_SHOWN_TEXT_BYTES)
                )),
            }
        }
        Some(_) => Err("metadata must be keys with texts".to_owned()),
    }
}

/// The rule for names, as the end of a sentence.
pub(crate) const NAME_RULE: &str = "a skill's name has 1 to 64 characters of a-z 0-9 -, without a hyphen at its ends or two in a row";

/// Returns whether `name` is a valid name of a skill.
pub(crate) fn is_skill_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.split('-').any(str::is_empty)
}

/// Returns an optional field, which must be a text if it is present.
fn optional_text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match (fields.get(key), text_field(fields, key)) {
        (None, _) => Ok(None),
        (Some(_), Some(text)) => Ok(Some(text)),
        (Some(Value::Array(_)), None) => Err(format!(
            "its {key} must be a text, and not a list: write its items one after the other"
        )),
        (Some(_), None) => Err(format!("its {key} must be a text: put it in quotes")),
    }
}

fn text_field<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

fn check_length(text: &str, max_length: usize, field: &str) -> Result<(), String> {
    let length = text.chars().count();
    if length <= max_length && !text.is_empty() {
        return Ok(());
    }
    let [length, most] = [length, max_length].map(|n| format_thousands(n as u64));
    Err(format!(
        "its {field} has {length} characters, but 1 to {most} are allowed"
    ))
}

/// Returns whether no text in the value contains anything that [`clean`] removes. Clients compare
/// the value with the file.
fn is_clean(value: &Value) -> bool {
    let is_plain = |text: &str| clean(text) == text;
    match value {
        Value::String(text) => is_plain(text),
        Value::Array(items) => items.iter().all(is_clean),
        Value::Object(members) => members
            .iter()
            .all(|(key, value)| is_plain(key) && is_clean(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(yaml: &str) -> Result<SkillFrontMatter, String> {
        SkillFrontMatter::parse(&format!("---\n{yaml}\n---\nBody"), "pdf")
    }

    #[test]
    fn everything_is_passed_on_as_it_is_written() {
        let matter = of(
            "# A comment.\nname: pdf\ndescription: >-\n  Reads\n  PDFs.\nlicense: MIT\nmetadata:\n  version: \"1.10\"\n\
             other: [1, 2.5, true, null, yes, {a: b}]\nallowed-tools: Read Bash(ls:*)",
        );
        let matter = matter.unwrap();
        let expected = json!({
            "name": "pdf", "description": "Reads PDFs.", "license": "MIT", "metadata": {"version": "1.10"},
            "other": [1, 2.5, true, null, "yes", {"a": "b"}], "allowed-tools": "Read Bash(ls:*)",
        });
        assert_eq!(
            serde_json::to_string(&matter.fields).unwrap(),
            expected.to_string(),
            "in this order"
        );
        assert_eq!(matter.description, "Reads PDFs.");
        let windows = SkillFrontMatter::parse(
            "\u{feff}---\r\nname: pdf\r\ndescription: A.\r\n---\r\n",
            "pdf",
        )
        .unwrap();
        assert_eq!(
            Value::Object(windows.fields),
            json!({"name": "pdf", "description": "A."})
        );
    }

    #[test]
    fn values_have_the_types_of_the_core_schema() {
        for (yaml, expected) in [
            ("on", json!("on")),
            ("No", json!("No")),
            ("y", json!("y")),
            ("True", json!(true)),
            ("~", json!(null)),
            ("Null", json!(null)),
            ("", json!(null)),
            ("1_000", json!("1_000")),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("0755", json!(755.0)),
            ("+12", json!(12)),
            ("-7", json!(-7)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("1.10", json!(1.1)),
            ("2026-01-02", json!("2026-01-02")),
            ("12:30:45", json!("12:30:45")),
            ("1.2.3", json!("1.2.3")),
            ("\"\\u00fc\"", json!("ü")),
            ("'it''s'", json!("it's")),
        ] {
            let matter = of(&format!("name: pdf\ndescription: A.\nx: {yaml}"));
            assert_eq!(
                matter.map(|matter| matter.fields["x"].clone()),
                Ok(expected),
                "{yaml:?}"
            );
        }
    }

    #[test]
    fn mistakes_say_what_is_wrong_and_where() {
        let named = |rest: &str| format!("---\nname: pdf\ndescription: A.\n{rest}\n---\n");
        let bomb: Vec<_> = (1..40)
            .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]", n - 1))
            .collect();
        let wide = format!("a: &a {}\nb: [{}]", "x".repeat(10_000), "*a,".repeat(900));
        let texts = [
            "# PDF".to_owned(),
            String::new(),
            " ---\nname: pdf\n---\n".to_owned(),
            "---\nname: pdf\n".to_owned(),
            "---\n---\n".to_owned(),
            "---\n- name\n---\n".to_owned(),
            "---\njust words\n---\n".to_owned(),
            "---\nname: pdf\n---\n".to_owned(),
            "---\ndescription: A.\n---\n".to_owned(),
            "---\nname: pdf\ndescription: ''\n---\n".to_owned(),
            "---\nname: 7\ndescription: A.\n---\n".to_owned(),
            "---\nname: pdf-tools\ndescription: A.\n---\n".to_owned(),
            "---\nname: PDF Tools\ndescription: A.\n---\n".to_owned(),
            format!("---\nname: pdf\ndescription: {}\n---\n", "x".repeat(1025)),
            format!(
                "---\nname: pdf\ndescription: A.\nx: {}\n---\n",
                "x".repeat(MAX_FRONT_MATTER_BYTES)
            ),
            named("name: pdf"),
            named("allowed-tools: [Read, Write]"),
            named("license: true"),
            named("compatibility: ''"),
            named("metadata: [a]"),
            named("metadata: {version: 1.0}"),
            named("x: \"\\e[31m\""),
            named("\"\\u202e\": x"),
            named("x: .nan"),
            named("x: !secret a"),
            named("x: !!python/object a"),
            named("base: &base {a: 1}\nx: {<<: *base}"),
            named("x: *nothing"),
            named("x: 1\n...\ny: 2"),
            named("{a: b}: c"),
            named(&format!("a0: &a0 [x]\n{}", bomb.join("\n"))),
            named(&wide),
            named(&format!("x: {}{}", "[".repeat(40), "]".repeat(40))),
            named(&format!("x: {}", "[".repeat(60_000))),
        ];
        let said: Vec<String> = texts
            .iter()
            .map(|text| SkillFrontMatter::parse(text, "pdf").unwrap_err())
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        1: it must begin with a line "---", the name and the description of the skill
        1: it must begin with a line "---", the name and the description of the skill
        1: it must begin with a line "---", the name and the description of the skill
        1: the front matter has no end: a line "---" is missing after it
        1: its front matter has no name
        2: keys with values were expected here
        2: keys with values were expected here
         its front matter has no description
         its front matter has no name
         its front matter has no description
         its name must be a text: put it in quotes
         its name is "pdf-tools", but its folder is called "pdf": rename one of them
         its name is "PDF Tools", but a skill's name has 1 to 64 characters of a-z 0-9 -, without a hyphen at its ends or two in a row
         its description has 1,025 characters, but 1 to 1,024 are allowed
        1: its front matter has 65,566 bytes, but at most 65,536 are allowed
        4: the key name is given twice
         its allowed-tools must be a text, and not a list: write its items one after the other
         its license must be a text: put it in quotes
         its compatibility has 0 characters, but 1 to 500 are allowed
         metadata must be keys with texts
         metadata.version must be a text: put it in quotes
         its front matter contains control characters: remove them
         its front matter contains control characters: remove them
        4: a number must be finite: put a text in quotes
        4: unsupported tag `!secret`
        4: unsupported tag `!!python/object`
        5: programs read merge keys (<<) in different ways: write out what they stand for
        4: alias references unknown anchor
        6: there can be only one document
        4: a text was expected here
        7: it is too large when its aliases are expanded
        5: it is too large when its aliases are expanded
        4: it is nested too deeply
        4: it is nested too deeply
        "#);
    }

    #[test]
    fn names_follow_the_specification() {
        let long = "a".repeat(64);
        for name in ["a", "pdf-2", "0", "a-b-c", &long] {
            assert!(is_skill_name(name), "{name}");
        }
        let longer = "a".repeat(65);
        for name in [
            "", "-", "-a", "a-", "a--b", "A", "a_b", "a.b", "a b", "ä", "..", &longer,
        ] {
            assert!(!is_skill_name(name), "{name}");
        }
    }

    #[test]
    fn an_anchor_that_is_used_a_few_times_is_written_out() {
        let matter = of("name: pdf\ndescription: &d A.\nagain: [*d, *d]").unwrap();
        assert_eq!(matter.fields["again"], json!(["A.", "A."]));
    }
}
