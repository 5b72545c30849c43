//! Generates JSON Schemas (2020-12) of arguments and structured content.

use crate::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, RestrictFormats};
use serde_json::{Value, json};

pub use schemars::Schema;

/// Returns the schema of arguments, which are deserialized.
pub(crate) fn of_input<T: JsonSchema>() -> Schema {
    let mut schema = generate_root_schema::<T>(settings().for_deserialize());
    // MCP requires `type` even if it is implied, for example by the variants of an enum.
    schema
        .ensure_object()
        .entry("type")
        .or_insert_with(|| "object".into());
    schema
}

/// Returns the schema of structured content, which is serialized.
pub(crate) fn of_output<T: JsonSchema>() -> Schema {
    let exact = RecursiveTransform(add_integer_bounds);
    generate_root_schema::<T>(
        bare_settings()
            .with_transform(exact)
            .with_transform(RestrictFormats::default())
            .for_serialize(),
    )
}

/// Returns the schema of a form's fields, in the subset of JSON Schema that clients can show (MCP,
/// "Elicitation"): an object of strings, numbers, booleans and choices.
pub(crate) fn of_form<T: JsonSchema>() -> Value {
    let mut schema = of_input::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
        if let Some(Value::Object(fields)) = members.get_mut("properties") {
            fields.values_mut().for_each(simplify_form_field);
        }
    }
    schema
}

/// Simplifies the schema of a form's field. A form has no `null`, so an optional field is one that
/// is not required. The descriptions of choices become their titles.
fn simplify_form_field(schema: &mut Value) {
    if let Some(one) = schema
        .get("anyOf")
        .and_then(Value::as_array)
        .and_then(|any| match any.as_slice() {
            [one, null] if null.get("type") == Some(&json!("null")) => Some(one.clone()),
            _ => None,
        })
    {
        let description = schema.get("description").cloned();
        *schema = one;
        if let (Some(members), Some(description)) = (schema.as_object_mut(), description) {
            members.insert("description".into(), description);
        }
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    members.retain(|key, value| key != "default" || !value.is_null());
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = members.get_mut("oneOf") {
        for choice in choices {
            if let Some(choice) = choice.as_object_mut() {
                let title = choice
                    .remove("description")
                    .or_else(|| choice.get("const").cloned());
                choice.retain(|key, _| key == "const");
                choice.extend(title.map(|title| ("title".to_owned(), title)));
            }
        }
        members.insert("type".into(), "string".into());
    }
    if let Some(items) = members.get_mut("items") {
        simplify_form_field(items);
        // In a list, the choices are in `anyOf`, not in `oneOf`.
        if let Some(items) = items.as_object_mut()
            && let Some(choices) = items.remove("oneOf")
        {
            items.remove("type");
            items.insert("anyOf".into(), choices);
        }
    }
}

/// Returns the schema for a tool without arguments.
pub(crate) fn of_no_arguments() -> Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": false})
}

fn settings() -> SchemaSettings {
    // Formats such as `uint32` have a meaning only in Rust.
    bare_settings().with_transform(RestrictFormats::default())
}

fn bare_settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        // MCP assumes 2020-12 by default.
        settings.meta_schema = None;
    })
}

/// Adds bounds to integers of 32 bits. Every client reads such integers exactly, and the host warns
/// about larger ones. `usize` and `isize` have 32 bits in a plugin.
fn add_integer_bounds(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int32" | "int") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some("uint32" | "uint") => (0, i64::from(u32::MAX)),
        _ => return,
    };
    let members = schema.ensure_object();
    members.entry("minimum").or_insert_with(|| least.into());
    members.entry("maximum").or_insert_with(|| most.into());
}

fn generate_root_schema<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name();
    // The name of a Rust type does not help a model, but a title that the author chose does.
    if schema.get("title").and_then(|title| title.as_str()) == Some(&*name) {
        schema.remove("title");
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

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
    fn subschemas_are_inline_and_nothing_is_superfluous() {
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
    fn the_output_schema_describes_the_serialized_form() {
        let schema = of_output::<Inner>();
        assert_eq!(schema.get("required"), Some(&json!(["text"])));
    }

    #[test]
    fn integers_that_are_exact_in_every_client_have_bounds() {
        #[derive(Serialize, JsonSchema)]
        struct Sizes {
            words: usize,
            offset: Option<i32>,
            id: u64,
        }
        let schema = of_output::<Sizes>().to_value();
        assert_eq!(
            schema["properties"],
            json!({
                "words": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
                "offset": {"type": ["integer", "null"], "minimum": -2_147_483_648, "maximum": 2_147_483_647},
                "id": {"type": "integer", "minimum": 0}
            })
        );
    }

    #[test]
    fn a_recursive_type_has_a_finite_schema() {
        assert_eq!(
            of_input::<Tree>().pointer("/properties/children/items"),
            Some(&json!({"$ref": "#"}))
        );
    }

    #[test]
    fn an_enum_is_an_object() {
        let schema = of_input::<Shape>();
        assert_eq!(schema.get("type"), Some(&json!("object")));
        assert!(schema.get("oneOf").is_some());
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        /// Up to ten.
        Small,
        /// More.
        Large,
    }

    #[test]
    fn a_form_has_choices_with_titles_and_no_null() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Fields {
            /// How large.
            size: Option<Size>,
            sizes: Vec<Size>,
            score: Option<f64>,
        }
        let choices = json!([{"const": "small", "title": "Up to ten."}, {"const": "large", "title": "More."}]);
        assert_eq!(
            of_form::<Fields>(),
            json!({
                "type": "object",
                "properties": {
                    "size": {"description": "How large.", "type": "string", "oneOf": choices},
                    "sizes": {"type": "array", "items": {"anyOf": choices}},
                    "score": {"type": "number"},
                },
                "required": ["sizes"],
            })
        );
    }

    #[test]
    fn a_title_of_the_author_is_kept() {
        assert_eq!(of_input::<Titled>().get("title"), Some(&json!("A point")));
    }
}
