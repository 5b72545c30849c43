//! Parses the text of a schema, within a limit on its size.

use serde_json::Value;
use toolbay_model::JsonSize;
use toolbay_model::text::format_thousands;

/// Maximum number of JSON values in a schema. The largest real schemas of tools have hundreds.
const MAX_SCHEMA_VALUES: u64 = 10_000;

/// Parses the text of a schema.
///
/// # Errors
///
/// The text is not JSON, or it has too many values. Parsed values need many times as much memory as
/// their text.
pub(super) fn parse_schema(text: &str) -> Result<Value, String> {
    if JsonSize::measure(text).values > MAX_SCHEMA_VALUES {
        return Err(format!(
            "contains more than {} values",
            format_thousands(MAX_SCHEMA_VALUES)
        ));
    }
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_too_many_values_is_not_parsed() {
        // The syntax error comes after the values, so a parser does not reach it.
        let text = format!("[{}!", "0,".repeat(10_000));
        assert_eq!(
            parse_schema(&text).unwrap_err(),
            "contains more than 10,000 values"
        );
        assert!(parse_schema("[0,!").unwrap_err().starts_with("not JSON: "));
        assert!(parse_schema(&format!("[{}0]", "0,".repeat(9_998))).is_ok());
    }
}
