//! Finds the value in a tool's arguments that is valid JSON but cannot be decoded, so that a model
//! can write it differently.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolbay_model::SchemaViolation;
use toolbay_model::text::bounded_line;

use crate::protocol::jsonrpc::truncate_quote;

/// Maximum number of levels that are searched. Each level may have to be parsed again as a whole.
const MAX_LEVELS: usize = 4;

#[derive(Deserialize)]
struct UnreadableParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Finds the value within the arguments in `params` that cannot be decoded, and the reason; `None`
/// if the error is elsewhere.
pub(crate) fn find_unreadable(params: &RawValue) -> Option<SchemaViolation> {
    let UnreadableParams { arguments } = serde_json::from_str(params.get()).ok()?;
    let arguments = arguments.filter(|arguments| arguments.get().starts_with('{'))?;
    // Parsed separately, the arguments are nested less deeply than within their message.
    let mut why = unreadable_reason(arguments).unwrap_or(UnreadableReason::Deep);
    let (mut value, mut pointer) = (arguments, String::new());
    for _ in 0..MAX_LEVELS {
        let wrong =
            child_values(value).into_iter().find_map(|(name, inner)| Some((unreadable_reason(inner)?, name, inner)));
        let Some((reason, name, inner)) = wrong else { break };
        let name = truncate_quote(&name).replace('~', "~0").replace('/', "~1");
        let _ = write!(pointer, "/{name}");
        (value, why) = (inner, reason);
        // Every enclosing value is nested at least as deeply: the first one is enough.
        if matches!(why, UnreadableReason::Deep) {
            break;
        }
    }
    Some(SchemaViolation { pointer: bounded_line(&pointer, 1 << 10), message: why.message() })
}

/// The reason that a value cannot be decoded.
enum UnreadableReason {
    /// The value is nested too deeply.
    Deep,
    /// A number beyond the range of double precision.
    Large,
    /// A string with an unpaired surrogate.
    Surrogate,
    Other(String),
}

impl UnreadableReason {
    fn message(&self) -> String {
        match self {
            Self::Deep => "the value is nested too deeply: expected at most 120 levels".to_owned(),
            Self::Large => "the number is too large: expected at most about 1.79e308".to_owned(),
            Self::Surrogate => {
                "the text has a surrogate (\\ud800 to \\udfff) without its other half: expected a whole character"
                    .to_owned()
            }
            Self::Other(what) => what.clone(),
        }
    }
}

/// Returns the reason that a value cannot be decoded; `None` if it can be.
fn unreadable_reason(value: &RawValue) -> Option<UnreadableReason> {
    let said = serde_json::from_str::<Value>(value.get()).err()?.to_string();
    Some(if said.contains("recursion limit") {
        UnreadableReason::Deep
    } else if said.contains("number out of range") {
        UnreadableReason::Large
    } else if said.contains("surrogate") || said.contains("hex escape") {
        UnreadableReason::Surrogate
    } else {
        let what = said.split(" at line ").next().unwrap_or_default();
        UnreadableReason::Other(truncate_quote(what).to_owned())
    })
}

/// Returns the direct children of a value and their names. The list is empty if a name cannot be
/// decoded.
fn child_values(value: &RawValue) -> Vec<(String, &RawValue)> {
    let text = value.get();
    if text.starts_with('{') {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
        members.into_iter().collect()
    } else if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        items.into_iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &str) -> Option<String> {
        let params = RawValue::from_string(format!(r#"{{"name": "t", "arguments": {arguments}}}"#)).unwrap();
        find_unreadable(&params).map(|violation| violation.to_string())
    }

    #[test]
    fn a_value_that_cannot_be_read_is_named() {
        let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
        let cases = [
            r#"{"a": 1, "b": "x\ud800y"}"#.to_owned(),
            r#"{"a/b": [1, {"c~": "\udc00"}]}"#.to_owned(),
            r#"{"a": {"b": [0, 1e999]}}"#.to_owned(),
            r#"{"a": -1e999}"#.to_owned(),
            format!(r#"{{"a": 1, "tree": {deep}}}"#),
            format!(r#"{{"{}": 1e999}}"#, "n".repeat(1_000)),
            r#"{"\ud800": 1}"#.to_owned(),
        ];
        let said = cases.map(|arguments| found(&arguments).unwrap());
        insta::assert_snapshot!(said.join("\n"), @r"
        /b: the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /a~1b/1/c~0: the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        /a/b/1: the number is too large: expected at most about 1.79e308
        /a: the number is too large: expected at most about 1.79e308
        /tree: the value is nested too deeply: expected at most 120 levels
        /nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: the number is too large: expected at most about 1.79e308
        (root): the text has a surrogate (\ud800 to \udfff) without its other half: expected a whole character
        ");
    }

    #[test]
    fn other_mistakes_are_not_of_the_arguments() {
        for arguments in ["7", "[1]", "null", "\"text\""] {
            assert_eq!(found(arguments), None, "{arguments}");
        }
    }
}
