//! Arguments that do not fit in their form alone, as they are meant, and what is said of that.

use serde_json::{Map, Value, json};
use toolbay_schema::{JsonSchema, ValueConversion};

/// The member of a result's `_meta` that says what was changed of the arguments.
const META: &str = "dev.toolbay/converted";

/// Most changes that the log names.
const NAMED: usize = 10;

/// What arguments may be meant to be.
pub(crate) struct ConvertedArguments {
    /// What is still to be checked.
    pub(crate) value: Value,
    /// What was changed.
    pub(crate) converted: Vec<ValueConversion>,
}

impl ConvertedArguments {
    /// What `arguments` may be meant to be; `None` if nothing else.
    pub(crate) fn of(schema: &JsonSchema, arguments: &Value) -> Option<Self> {
        let mut value = arguments.clone();
        let converted = schema.convert(&mut value)?;
        Some(Self { value, converted })
    }
}

/// What was changed, for the log.
pub(crate) fn told(converted: &[ValueConversion]) -> String {
    let first: Vec<String> = converted.iter().take(NAMED).map(ToString::to_string).collect();
    let more = converted.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// Says in the `_meta` of a result what was changed.
pub(crate) fn tell(meta: &mut Map<String, Value>, converted: &[ValueConversion]) {
    if !converted.is_empty() {
        let of = |one: &ValueConversion| json!({"pointer": one.pointer, "kind": one.kind.as_str()});
        meta.insert(META.to_owned(), converted.iter().map(of).collect());
    }
}
