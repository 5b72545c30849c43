//! Tools that say more of themselves than `#[tool]` has words for.

use std::borrow::Cow;

use serde::Deserialize;
use toolbay_plugin::prelude::*;
use toolbay_plugin::schemars::{Schema, SchemaGenerator};
use toolbay_plugin::serde_json::{Map, Value, json};
use toolbay_plugin::{Definition, Tool};

/// Arguments of a schema with everything in it that a proxy might lose.
#[derive(Deserialize)]
pub(crate) struct Anything(Map<String, Value>);

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
                "street": {"type": "string"}, "city": {"type": "string"}
            }}},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"}
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false
        });
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// Takes arguments of a schema that uses what only 2020-12 has.
#[tool(read_only)]
pub(crate) fn json_schema_2020_12_tool(args: Anything) -> String {
    format!("{} arguments", args.0.len())
}

/// A tool for clients that can sample.
#[expect(non_camel_case_types, reason = "a tool is named as a function is")]
pub(crate) struct test_missing_capability;

impl Tool for test_missing_capability {
    const NAME: &'static str = "test_missing_capability";

    fn definition() -> Definition {
        Definition::new(Self::NAME, "Is for clients that can sample.")
            .meta("dev.toolbay/client-capabilities", json!({"sampling": {}}))
    }

    fn call(_arguments: &str, _context: &Context) -> Result<Output> {
        "This client can sample.".into_output()
    }
}
