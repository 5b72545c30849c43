//! JSON Schemas of arguments and structured content, as JSON Schema 2020-12.

use crate::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;

pub use schemars::Schema;

/// The schema of arguments that are read from JSON.
pub(crate) fn of_input<T: JsonSchema>() -> Schema {
    let mut schema = root::<T>(settings().for_deserialize());
    // MCP wants it even where it follows, as from the variants of an enum.
    schema.ensure_object().entry("type").or_insert_with(|| "object".into());
    schema
}

/// The schema of structured content that is written as JSON.
pub(crate) fn of_output<T: JsonSchema>() -> Schema {
    root::<T>(settings().for_serialize())
}

/// The schema of the arguments of a tool that takes none.
pub(crate) fn of_nothing() -> Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": false})
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            // 2020-12 is what MCP takes it for anyway.
            settings.meta_schema = None;
        })
        // `uint32` and the like mean something to Rust only.
        .with_transform(RestrictFormats::default())
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name();
    // The name of a Rust type says nothing to a model; a title of the author's
    // does.
    if schema.get("title").and_then(|title| title.as_str()) == Some(&*name) {
        schema.remove("title");
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        /// How many.
        #[schemars(range(min = 1, max = 20))]
        count: u32,
        #[serde(default)]
        inner: Inner,
    }

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    struct Inner {
        text: Option<String>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "shape")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[schemars(title = "A point")]
    struct Titled {
        x: f64,
    }

    #[test]
    fn subschemas_are_inline_and_nothing_is_noise() {
        assert_eq!(
            of_input::<Strict>().to_value(),
            json!({
                "type": "object",
                "properties": {
                    "count": {
                        "description": "How many.",
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 20
                    },
                    "inner": {
                        "type": "object",
                        "properties": {"text": {"type": ["string", "null"]}},
                        "default": {"text": null}
                    }
                },
                "additionalProperties": false,
                "required": ["count"]
            })
        );
    }

    #[test]
    fn the_output_is_as_it_is_written() {
        let schema = of_output::<Inner>();
        assert_eq!(schema.get("required"), Some(&json!(["text"])));
    }

    #[test]
    fn a_recursive_type_ends() {
        assert_eq!(of_input::<Tree>().pointer("/properties/children/items"), Some(&json!({"$ref": "#"})));
    }

    #[test]
    fn an_enum_is_an_object() {
        let schema = of_input::<Shape>();
        assert_eq!(schema.get("type"), Some(&json!("object")));
        assert!(schema.get("oneOf").is_some());
    }

    #[test]
    fn a_title_of_the_author_stays() {
        assert_eq!(of_input::<Titled>().get("title"), Some(&json!("A point")));
    }
}
