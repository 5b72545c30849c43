//! JSON Schema of a command's arguments, written by the operator. The command itself has no schema.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolbay_schema::{JsonSchema, PatternBudget};

use crate::rules::param_headers;

/// Valid schema of a command's arguments.
#[derive(Clone, Debug)]
pub struct InputSchema(Arc<JsonSchema>);

impl InputSchema {
    /// Returns the compiled schema.
    pub(crate) fn schema(&self) -> &Arc<JsonSchema> {
        &self.0
    }

    fn new(value: &Value) -> Result<Self, String> {
        let text = value.to_string();
        let schema =
            JsonSchema::compile_input(&text, &PatternBudget::for_schemas([text.as_str()]))?;
        param_headers::declared_headers(schema.value())?;
        Ok(Self(Arc::new(schema)))
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.value() == other.0.value()
    }
}

impl<'de> Deserialize<'de> for InputSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The value is a table, or JSON text.
        let value = match Value::deserialize(deserializer)? {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| D::Error::custom(format!("is not valid JSON: {error}")))?,
            value => value,
        };
        Self::new(&value)
            .map_err(|why| D::Error::custom(format!("is not a valid schema of arguments: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<InputSchema, String> {
        #[derive(Deserialize)]
        struct Tool {
            input_schema: InputSchema,
        }
        toml::from_str::<Tool>(text)
            .map(|tool| tool.input_schema)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_table_and_a_text_are_the_same_schema() {
        let table =
            read("[input_schema]\ntype = \"object\"\nrequired = [\"n\"]\nproperties.n = { type = \"integer\" }")
                .unwrap();
        let text = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;
        assert_eq!(read(&format!("input_schema = '{text}'")).unwrap(), table);
        assert_ne!(read("input_schema = { type = \"object\" }").unwrap(), table);
    }

    #[test]
    fn invalid_argument_schemas_are_refused() {
        let cases = [
            ("input_schema = '{'", "is not valid JSON: "),
            ("input_schema = 7", "is not a valid schema of arguments: "),
            (
                "input_schema = { type = \"string\" }",
                "is not a valid schema of arguments: its root must have \"type\": \"object\"",
            ),
            (
                "input_schema = { type = \"object\", required = 7 }",
                "is not a valid schema of arguments: ",
            ),
        ];
        for (text, expected) in cases {
            let why = read(text).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
    }
}
