//! Tools that say more of themselves than `#[tool]` has words for.

use std::borrow::Cow;

use serde::Deserialize;
use toolbay_plugin::Definition;
use toolbay_plugin::prelude::*;
use toolbay_plugin::schemars::{Schema, SchemaGenerator};
use toolbay_plugin::serde_json::{Map, Value, json};

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

/// Is for clients that can sample.
#[tool(read_only, define = needs_sampling)]
pub(crate) fn test_missing_capability() -> &'static str {
    "This client can sample."
}

fn needs_sampling(definition: Definition) -> Definition {
    definition.meta("dev.toolbay/client-capabilities", json!({"sampling": {}}))
}
