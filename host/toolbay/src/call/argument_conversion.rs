//! Conversion of arguments that violate the input schema only in their form, such as a number sent
//! as a string, and the report of what was converted.

use serde_json::{Map, Value, json};
use toolbay_model::SchemaViolation;
use toolbay_schema::{ConversionKind, JsonSchema, ValueConversion};

/// Member of a result's `_meta` that lists the converted arguments.
const CONVERTED_META_KEY: &str = "dev.toolbay/converted";

/// Arguments after conversion.
pub(crate) struct ConvertedArguments {
    /// The converted arguments, which are not validated yet.
    pub(crate) value: Value,
    /// The conversions that were made.
    pub(crate) converted: Vec<ValueConversion>,
}

impl ConvertedArguments {
    /// Converts a copy of `arguments` to fit `schema`. Returns `None` if there is nothing to
    /// convert.
    pub(crate) fn convert(schema: &JsonSchema, arguments: &Value) -> Option<Self> {
        let mut value = arguments.clone();
        let converted = schema.convert(&mut value)?;
        Some(Self { value, converted })
    }
}

/// Returns `converted`, preceded by the corrections that were made when the request was parsed.
pub(crate) fn with_corrections(
    corrected: &[SchemaViolation],
    converted: Vec<ValueConversion>,
) -> Vec<ValueConversion> {
    let to_conversion = |violation: &SchemaViolation| {
        // The arguments as a whole were a string, and the arguments of a prompt become strings.
        let kind = if violation.pointer.is_empty() {
            ConversionKind::Json
        } else {
            ConversionKind::Text
        };
        ValueConversion {
            pointer: violation.pointer.clone(),
            kind,
        }
    };
    corrected
        .iter()
        .map(to_conversion)
        .chain(converted)
        .collect()
}

/// Adds the conversions to the `_meta` of a result.
pub(crate) fn add_to_meta(meta: &mut Map<String, Value>, converted: &[ValueConversion]) {
    if !converted.is_empty() {
        let to_json =
            |one: &ValueConversion| json!({"pointer": one.pointer, "kind": one.kind.as_str()});
        meta.insert(
            CONVERTED_META_KEY.to_owned(),
            converted.iter().map(to_json).collect(),
        );
    }
}
