//! Reads arguments in another form than the protocol requires: an object as a string, as APIs for
//! models deliver it, and numbers where a prompt expects strings.
//!
//! Arguments that were read in this way are accepted only if the argument check is lenient. The
//! host decides that, because the operator can set it for each plugin.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::SchemaViolation;
use toolbay_model::text::clean_line;

use crate::protocol::argument_errors::{
    child_values, find_unreadable, pointer_step, unreadable_string,
};
use crate::protocol::lenient_object::json_type;

/// Maximum number of arguments of a prompt that are converted to text.
const MAX_CONVERTED: usize = 100;

/// Arguments that could not be decoded as the object that the protocol requires.
pub(crate) enum UndecodedArguments<'a> {
    /// A string, which may contain the object. It is not parsed yet, because the object takes more
    /// memory than the string.
    Packed(String),
    /// An object, not yet parsed.
    Object(&'a RawValue),
    /// A string that cannot be decoded.
    Unreadable(SchemaViolation),
}

impl<'a> UndecodedArguments<'a> {
    /// Returns the arguments if they are a string or an object.
    pub(crate) fn new(arguments: &'a RawValue) -> Option<Self> {
        match arguments.get().as_bytes().first() {
            Some(b'{') => Some(Self::Object(arguments)),
            Some(b'"') => Some(match serde_json::from_str(arguments.get()) {
                Ok(text) => Self::Packed(text),
                Err(_) => Self::Unreadable(find_unreadable(arguments)),
            }),
            _ => None,
        }
    }
}

/// The arguments of a prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptArguments {
    pub(crate) values: BTreeMap<String, String>,
    /// The numbers and booleans that were converted to text.
    pub(crate) corrected: Vec<SchemaViolation>,
    /// The first value that cannot be converted.
    pub(crate) unreadable: Option<SchemaViolation>,
}

/// Returns the violation of arguments that are a string with an object in it.
pub(crate) fn packed_violation() -> SchemaViolation {
    whole_violation(
        "arguments must be an object: send the object itself, and not a string that contains it"
            .to_owned(),
    )
}

/// Parses the arguments of a tool, which were sent as this string.
///
/// # Errors
///
/// The string does not contain an object that can be decoded.
pub(crate) fn parse_tool(text: &str) -> Result<Map<String, Value>, SchemaViolation> {
    let Some(object) = packed_object(text)? else {
        return Ok(Map::new());
    };
    serde_json::from_str(object.get()).map_err(|_| find_unreadable(object))
}

/// Parses the arguments of a prompt, which were sent as this string.
pub(crate) fn parse_prompt(text: &str) -> PromptArguments {
    match packed_object(text) {
        Ok(None) => PromptArguments::default(),
        Ok(Some(object)) => read_prompt(object),
        Err(violation) => PromptArguments {
            unreadable: Some(violation),
            ..PromptArguments::default()
        },
    }
}

/// Reads the arguments of a prompt that are not all strings.
pub(crate) fn read_prompt(object: &RawValue) -> PromptArguments {
    let mut parsed = PromptArguments::default();
    for argument in child_values(object) {
        let json = argument.value.get();
        let Ok(name) = argument.name() else {
            parsed.unreadable = Some(find_unreadable(object));
            break;
        };
        let pointer = || clean_line(&pointer_step(&name), 200);
        let kind = json_type(json);
        let message = format!("arguments of prompts are strings: expected a string, not {kind}");
        let value = if json.starts_with('"') {
            serde_json::from_str(json)
                .map_err(|_| unreadable_string(argument.value).unwrap_or_default())
        } else if json.starts_with(['{', '[', 'n']) || parsed.corrected.len() == MAX_CONVERTED {
            Err(message)
        } else {
            parsed.corrected.push(SchemaViolation {
                pointer: pointer(),
                message,
            });
            Ok(json.to_owned())
        };
        match value {
            Ok(value) => {
                parsed.values.insert(name, value);
            }
            Err(message) => {
                parsed.unreadable = Some(SchemaViolation {
                    pointer: pointer(),
                    message,
                });
                break;
            }
        }
    }
    parsed
}

/// Returns the object in a string; `None` if the string is empty or contains `null`, as a call
/// without arguments.
///
/// # Errors
///
/// The string contains something else.
fn packed_object(text: &str) -> Result<Option<&RawValue>, SchemaViolation> {
    let text = text.trim_ascii();
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        whole_violation(format!(
            "arguments must be an object, and the string is not JSON: {error}"
        ))
    })?;
    if !raw.get().starts_with('{') {
        let kind = json_type(raw.get());
        return Err(whole_violation(format!(
            "arguments must be an object, not a string that contains {kind}"
        )));
    }
    Ok(Some(raw))
}

/// Returns the violation of the arguments as a whole.
fn whole_violation(message: String) -> SchemaViolation {
    SchemaViolation {
        pointer: String::new(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_can_contain_the_arguments() {
        for text in ["", " ", "null", "{}", " {}\n"] {
            assert_eq!(parse_tool(text), Ok(Map::new()), "{text:?}");
            assert_eq!(parse_prompt(text), PromptArguments::default(), "{text:?}");
        }
        assert_eq!(
            parse_tool(r#"{"n": [1, "a"]}"#).map(Value::Object),
            Ok(serde_json::json!({"n": [1, "a"]}))
        );
        let said = [
            "[1]",
            "7",
            "\"{}\"",
            "{",
            r#"{"a": 1e999}"#,
            r#"{"\ud800": 1}"#,
            "hello",
        ];
        let said = said.map(|text| parse_tool(text).unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"), @r"
        (root): arguments must be an object, not a string that contains a list
        (root): arguments must be an object, not a string that contains a number
        (root): arguments must be an object, not a string that contains a string
        (root): arguments must be an object, and the string is not JSON: EOF while parsing an object at line 1 column 1
        /a: the number is too large: expected at most about 1.79e308
        /\ud800: the name of this member has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        (root): arguments must be an object, and the string is not JSON: expected value at line 1 column 1
        ");
    }

    #[test]
    fn numbers_and_booleans_become_the_text_of_a_prompt() {
        let read = parse_prompt(r#"{"a": 5, "b": 1.50, "c": true, "d": "x"}"#);
        let values = [("a", "5"), ("b", "1.50"), ("c", "true"), ("d", "x")];
        assert_eq!(
            read.values,
            values
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        );
        let said: Vec<String> = read.corrected.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        /a: arguments of prompts are strings: expected a string, not a number
        /b: arguments of prompts are strings: expected a string, not a number
        /c: arguments of prompts are strings: expected a string, not a boolean
        ");
        assert_eq!(read.unreadable, None);
        let cases = [
            r#"{"a": null}"#,
            r#"{"a": 1, "b/": [1]}"#,
            r#"{"a": "\ud800"}"#,
            r#"{"\ud800": "x"}"#,
            "7",
        ];
        let said = cases.map(|text| parse_prompt(text).unreadable.unwrap().to_string());
        insta::assert_snapshot!(said.join("\n"), @r"
        /a: arguments of prompts are strings: expected a string, not null
        /b~1: arguments of prompts are strings: expected a string, not a list
        /a: the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /\ud800: the name of this member has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        (root): arguments must be an object, not a string that contains a number
        ");
    }

    #[test]
    fn the_number_of_converted_arguments_is_limited() {
        let many: Vec<String> = (0..=MAX_CONVERTED)
            .map(|n| format!("\"{n}\": {n}"))
            .collect();
        let read = parse_prompt(&format!("{{{}}}", many.join(",")));
        assert_eq!(read.corrected.len(), MAX_CONVERTED);
        assert!(read.unreadable.is_some());
    }
}
