//! Finds the value in a tool's arguments that is valid JSON but cannot be decoded, so that a model
//! can write it differently.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;
use serde_json::value::RawValue;
use toolbay_model::SchemaViolation;
use toolbay_model::text::bounded_line;

use crate::protocol::jsonrpc::truncate_quote;

/// Maximum number of levels that are searched. Each level may have to be parsed again as a whole.
const MAX_LEVELS: usize = 4;

/// Maximum length of the pointer to a value, in bytes.
const MAX_POINTER_BYTES: usize = 1 << 10;

#[derive(Deserialize)]
struct UnreadableParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Returns the arguments in `params`, not yet parsed.
pub(crate) fn raw_arguments(params: &RawValue) -> Option<&RawValue> {
    let UnreadableParams { arguments } = serde_json::from_str(params.get()).ok()?;
    arguments
}

/// Finds the value within `arguments` because of which they cannot be decoded, and the reason.
pub(crate) fn find_unreadable(arguments: &RawValue) -> SchemaViolation {
    // Parsed separately, the arguments are nested less deeply than within their message.
    let mut innermost_reason = unreadable_reason(arguments).unwrap_or(UnreadableReason::TooDeep);
    let mut value = arguments;
    let mut pointer = String::new();
    for _ in 0..MAX_LEVELS {
        let unreadable_child =
            child_values(value)
                .into_iter()
                .find_map(|child| match child.name() {
                    Ok(name) => Some((unreadable_reason(child.value)?, name, child.value)),
                    Err(raw_name) => {
                        Some((UnreadableReason::Name, raw_name.to_owned(), child.value))
                    }
                });
        let Some((reason, name, inner)) = unreadable_child else {
            break;
        };
        pointer.push_str(&pointer_step(&name));
        (value, innermost_reason) = (inner, reason);
        // For a value that is nested too deeply, it is enough to report the outermost member.
        if matches!(
            innermost_reason,
            UnreadableReason::TooDeep | UnreadableReason::Name
        ) {
            break;
        }
    }
    SchemaViolation {
        pointer: bounded_line(&pointer, MAX_POINTER_BYTES),
        message: innermost_reason.message(),
    }
}

/// The reason that a value cannot be decoded.
enum UnreadableReason {
    /// The value is nested too deeply.
    TooDeep,
    /// A number beyond the range of double precision.
    TooLarge,
    /// A string with an unpaired surrogate.
    Surrogate,
    /// The name of the value has an unpaired surrogate.
    Name,
    Other(String),
}

impl UnreadableReason {
    fn message(&self) -> String {
        match self {
            Self::TooDeep => "the value is nested too deeply: expected at most 120 levels".to_owned(),
            Self::TooLarge => "the number is too large: expected at most about 1.79e308".to_owned(),
            Self::Surrogate => {
                "the text has a surrogate (\\ud800 to \\udfff) without its other half: expected a whole character"
                    .to_owned()
            }
            Self::Name => {
                "the name of this member has a surrogate (\\ud800 to \\udfff) without its other half: expected a whole \
                 character"
                    .to_owned()
            }
            Self::Other(what) => what.clone(),
        }
    }
}

/// Returns the reason that a value cannot be decoded; `None` if it can be.
fn unreadable_reason(value: &RawValue) -> Option<UnreadableReason> {
    let message = serde_json::from_str::<Value>(value.get())
        .err()?
        .to_string();
    Some(if message.contains("recursion limit") {
        UnreadableReason::TooDeep
    } else if message.contains("number out of range") {
        UnreadableReason::TooLarge
    } else if message.contains("surrogate") || message.contains("hex escape") {
        UnreadableReason::Surrogate
    } else {
        let what = message.split(" at line ").next().unwrap_or_default();
        UnreadableReason::Other(truncate_quote(what).to_owned())
    })
}

/// Returns the reason that a string cannot be decoded; `None` if it can be.
pub(crate) fn unreadable_string(value: &RawValue) -> Option<String> {
    unreadable_reason(value).map(|reason| reason.message())
}

/// Returns the part of a JSON Pointer for the member with this name. Truncates the name.
pub(crate) fn pointer_step(name: &str) -> String {
    format!(
        "/{}",
        truncate_quote(name).replace('~', "~0").replace('/', "~1")
    )
}

/// A direct child of a value.
pub(crate) struct ChildValue<'a> {
    /// The JSON of the name of a member, or the index of an item.
    name: Result<&'a RawValue, usize>,
    pub(crate) value: &'a RawValue,
}

impl<'a> ChildValue<'a> {
    /// Returns the name or index of the child.
    ///
    /// # Errors
    ///
    /// The name cannot be decoded. Returns it as it is written.
    pub(crate) fn name(&self) -> Result<String, &'a str> {
        match self.name {
            Ok(name) => serde_json::from_str(name.get()).map_err(|_| name.get().trim_matches('"')),
            Err(index) => Ok(index.to_string()),
        }
    }
}

/// Returns the direct children of a value, in their order.
pub(crate) fn child_values(value: &RawValue) -> Vec<ChildValue<'_>> {
    let text = value.get();
    if text.starts_with('{') {
        serde_json::Deserializer::from_str(text)
            .deserialize_map(RawMembers)
            .unwrap_or_default()
    } else if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        items
            .into_iter()
            .enumerate()
            .map(|(at, value)| ChildValue {
                name: Err(at),
                value,
            })
            .collect()
    } else {
        Vec::new()
    }
}

/// Visitor that collects the members of an object, not yet parsed. Their names may be impossible to
/// decode.
struct RawMembers;

impl<'de> Visitor<'de> for RawMembers {
    type Value = Vec<ChildValue<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push(ChildValue {
                name: Ok(name),
                value,
            });
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreadable_text(arguments: &str) -> String {
        let params =
            RawValue::from_string(format!(r#"{{"name": "t", "arguments": {arguments}}}"#)).unwrap();
        find_unreadable(raw_arguments(&params).unwrap()).to_string()
    }

    #[test]
    fn a_value_that_cannot_be_decoded_is_located() {
        let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
        let cases = [
            r#"{"a": 1, "b": "x\ud800y"}"#.to_owned(),
            r#"{"a/b": [1, {"c~": "\udc00"}]}"#.to_owned(),
            r#"{"a": {"b": [0, 1e999]}}"#.to_owned(),
            r#"{"a": -1e999}"#.to_owned(),
            format!(r#"{{"a": 1, "tree": {deep}}}"#),
            format!(r#"{{"{}": 1e999}}"#, "n".repeat(1_000)),
            r#"{"\ud800": 1}"#.to_owned(),
            r#"{"a": [{"b": 1, "x\udc00/": 1e999}]}"#.to_owned(),
        ];
        let said = cases.map(|arguments| unreadable_text(&arguments));
        insta::assert_snapshot!(said.join("\n"), @r"
        /b: the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /a~1b/1/c~0: the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /a/b/1: the number is too large: expected at most about 1.79e308
        /a: the number is too large: expected at most about 1.79e308
        /tree: the value is nested too deeply: expected at most 120 levels
        /nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: the number is too large: expected at most about 1.79e308
        /\ud800: the name of this member has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /a/0/x\udc00~1: the name of this member has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        ");
    }
}
