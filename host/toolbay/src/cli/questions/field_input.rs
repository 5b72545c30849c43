//! Fields of a form: what a person types becomes a value that the field accepts.

use std::fmt::Write as _;

use serde_json::{Number, Value, json};
use toolbay_model::text::clean_line;
use toolbay_schema::JsonSchema;

/// Maximum size of a printed text of a plugin, in bytes.
const MAX_TEXT_BYTES: usize = 500;

/// Maximum number of printed choices.
const MAX_CHOICES: usize = 100;

/// Maximum number of reported violations.
const MAX_VIOLATIONS: usize = 3;

/// A field of a form.
#[derive(Debug)]
pub(super) struct FormField {
    name: String,
    schema: Value,
    is_required: bool,
    kind: FieldKind,
    /// The values to choose from, each with its title. Empty if any value is possible.
    choices: Vec<(Value, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    /// Several of the choices.
    List,
}

impl FormField {
    /// Reads the field's schema.
    pub(super) fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => FieldKind::Boolean,
            Some("integer") => FieldKind::Integer,
            Some("number") => FieldKind::Number,
            Some("array") => FieldKind::List,
            _ => FieldKind::Text,
        };
        let source = match kind {
            FieldKind::List => schema.get("items").unwrap_or(schema),
            _ => schema,
        };
        Self {
            name: name.to_owned(),
            schema: schema.clone(),
            is_required,
            kind,
            choices: choices(source),
        }
    }

    /// Returns the lines that ask for the field.
    pub(super) fn prompt(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str);
        let name = clean_line(&self.name, MAX_TEXT_BYTES);
        let mut line = match text("title") {
            Some(title) => format!("{name} | {}", clean_line(title, MAX_TEXT_BYTES)),
            None => name.clone(),
        };
        if let Some(description) = text("description") {
            line.push_str(": ");
            line.push_str(&clean_line(description, MAX_TEXT_BYTES));
        }
        let mut remarks = vec![
            match self.kind {
                FieldKind::Text if self.choices.is_empty() => "a text",
                FieldKind::Text => "a number or value of the list",
                FieldKind::Number => "a number",
                FieldKind::Integer => "a whole number",
                FieldKind::Boolean => "y or n",
                FieldKind::List => "numbers or values of the list, with commas between them",
            }
            .to_owned(),
        ];
        match self.schema.get("default") {
            Some(default) => remarks.push(format!(
                "default {}",
                clean_line(&default.to_string(), MAX_TEXT_BYTES)
            )),
            None if !self.is_required => remarks.push("optional".to_owned()),
            None => {}
        }
        let mut out = format!("{line} ({})", remarks.join(", "));
        for (number, (_, title)) in (1..).zip(self.choices.iter().take(MAX_CHOICES)) {
            let title = clean_line(title, MAX_TEXT_BYTES);
            let _ = write!(out, "\n    {number}) {title}");
        }
        out
    }

    /// Returns the value that a person typed; `None` to leave the field out.
    ///
    /// # Errors
    ///
    /// The reason why the field does not accept it.
    pub(super) fn parse(&self, typed: &str) -> Result<Option<Value>, String> {
        let word = typed.trim();
        if word.is_empty() {
            return match self.schema.get("default") {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required && self.kind == FieldKind::Text => {
                    Err("a value is required; type \"\" for an empty text".to_owned())
                }
                None if self.is_required => Err("a value is required".to_owned()),
                None => Ok(None),
            };
        }
        let value = match self.kind {
            FieldKind::Boolean => match word.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err("type y or n".to_owned()),
            },
            FieldKind::Integer | FieldKind::Number => json!(
                word.parse::<Number>()
                    .map_err(|_| "that is not a number".to_owned())?
            ),
            FieldKind::List => self.choose_several(word)?,
            FieldKind::Text if self.choices.is_empty() => {
                json!(if word == "\"\"" { "" } else { typed })
            }
            FieldKind::Text => self.choose(word)?,
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    fn choose_several(&self, typed: &str) -> Result<Value, String> {
        let words = typed.split(',').map(str::trim);
        let values = words
            .filter(|word| !word.is_empty())
            .map(|word| self.choose(word));
        values.collect::<Result<Vec<_>, _>>().map(Value::from)
    }

    /// Returns a choice by its value, its title or its number.
    fn choose(&self, word: &str) -> Result<Value, String> {
        let by_value = self
            .choices
            .iter()
            .find(|(value, _)| value.as_str() == Some(word));
        let by_title = || self.choices.iter().find(|(_, title)| title == word);
        let by_number = || {
            let number: usize = word.parse().ok()?;
            self.choices.get(number.checked_sub(1)?)
        };
        by_value
            .or_else(by_title)
            .or_else(by_number)
            .map(|(value, _)| value.clone())
            .ok_or_else(|| format!("{word:?} is not in the list"))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let schema = JsonSchema::compile(&self.schema.to_string())?;
        let violations = schema.quick_violations(value).unwrap_or_default();
        let messages: Vec<String> = violations
            .iter()
            .take(MAX_VIOLATIONS)
            .map(|violation| clean_line(&violation.message, MAX_TEXT_BYTES))
            .collect();
        if messages.is_empty() {
            Ok(())
        } else {
            Err(messages.join("; "))
        }
    }
}

/// Returns the choices of a field, each with its title.
fn choices(schema: &Value) -> Vec<(Value, String)> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        return titled
            .iter()
            .filter_map(|choice| {
                let value = choice.get("const")?;
                let title = choice.get("title").unwrap_or(value);
                Some((value.clone(), plain_text(title)))
            })
            .collect();
    }
    let names = list("enumNames");
    let titles = |index: usize, value: &Value| {
        let name = names.and_then(|names| names.get(index));
        plain_text(name.unwrap_or(value))
    };
    list("enum")
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, value)| (value.clone(), titles(index, value)))
        .collect()
}

/// Returns a text without quotation marks.
fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(schema: &Value, required: bool, typed: &str) -> Result<Option<Value>, String> {
        FormField::new("field", schema, required).parse(typed)
    }

    #[test]
    fn typed_text_becomes_a_value() {
        let titled = json!({"type": "string", "oneOf": [
            {"const": "2", "title": "Two"}, {"const": "b", "title": "B it is"}]});
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1});
        let named = json!({"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]});
        let text = json!({"type": "string"});
        for (schema, typed, value) in [
            (&json!({"type": "boolean"}), " Yes ", json!(true)),
            (&json!({"type": "boolean"}), "n", json!(false)),
            (
                &json!({"type": "integer"}),
                "18446744073709551615",
                json!(18_446_744_073_709_551_615_u64),
            ),
            (&json!({"type": "number"}), "-1.5e3", json!(-1500.0)),
            (&text, " a b ", json!(" a b ")),
            (&text, "\"\"", json!("")),
            (&json!({"type": "string", "default": "d"}), "", json!("d")),
            (&titled, "2", json!("2")),
            (&titled, "B it is", json!("b")),
            (&titled, "1", json!("2")),
            (&named, "Why", json!("y")),
            (&named, "1", json!("x")),
            (&several, "y", json!(["y"])),
            (&several, "1,", json!(["x"])),
        ] {
            assert_eq!(
                parse(schema, true, typed),
                Ok(Some(value)),
                "{schema} {typed}"
            );
        }
        assert_eq!(parse(&text, false, ""), Ok(None));
    }

    #[test]
    fn what_a_field_does_not_accept_is_refused() {
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1});
        for (schema, typed) in [
            (json!({"type": "boolean"}), "maybe"),
            (json!({"type": "boolean"}), ""),
            (json!({"type": "integer"}), "1.5"),
            (json!({"type": "integer", "maximum": 3}), "4"),
            (json!({"type": "number"}), "NaN"),
            (json!({"type": "string"}), ""),
            (json!({"type": "string", "minLength": 3}), "ab"),
            (json!({"type": "string", "enum": ["x"]}), "2"),
            (json!({"type": "string", "enum": ["x"]}), "0"),
            (several.clone(), "x,y"),
            (several, "x,z"),
        ] {
            let parsed = parse(&schema, true, typed);
            assert!(parsed.is_err(), "{schema} {typed:?}: {parsed:?}");
        }
    }

    #[test]
    fn the_prompt_shows_choices_and_no_control_characters() {
        let schema = json!({"type": "string", "title": "Size\u{1b}[2J\n", "description": "Of it.",
            "enum": ["s", "l"], "enumNames": ["Small\nfake", "Large"], "default": "s"});
        insta::assert_snapshot!(FormField::new("size", &schema, true).prompt(), @r#"
        size | Size\n: Of it. (a number or value of the list, default "s")
            1) Small\nfake
            2) Large
        "#);
    }
}
