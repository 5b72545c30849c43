//! JSON Schema for WIT types. Uses only plain keywords that strict clients accept, and no
//! references.

use serde_json::{Map, Value, json};

use super::wit_type::{WitInteger, WitType};

/// The direction of a value. A guest may return values that a model may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueDirection {
    /// Arguments.
    Input,
    /// Results.
    Output,
}

/// Maximum integer that is exact as a JSON number in every client (RFC 8259, section 6).
pub(super) const MAX_EXACT_INTEGER: i128 = (1 << 53) - 1;

/// Strings that represent floats that are not JSON numbers, in results.
pub(super) const NON_FINITE_NAMES: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Looks up the documentation of the value at a path such as `/request/units`.
pub(super) type DocLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the schema of an object with these members: parameters, or the fields of a record.
pub(super) fn object_schema(
    members: &[(String, WitType)],
    direction: ValueDirection,
    path: &str,
    docs_at: DocLookup<'_>,
) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, shape) in members {
        let path = format!("{path}/{name}");
        let (mut schema, optional) = match (shape, direction) {
            // Results omit these members, so `null` is not among their values.
            (WitType::Option(inner), ValueDirection::Output) => (
                option_content_schema(inner, direction, &path, docs_at),
                true,
            ),
            (WitType::Option(_), ValueDirection::Input) => {
                (type_schema(shape, direction, &path, docs_at), true)
            }
            _ => (type_schema(shape, direction, &path, docs_at), false),
        };
        if let (Some(text), Value::Object(schema)) = (docs_at(&path), &mut schema) {
            schema.insert("description".into(), text.into());
        }
        if !optional {
            required.push(name.as_str());
        }
        properties.insert(name.clone(), schema);
    }
    // Draft 4 does not allow an empty `required`.
    if required.is_empty() {
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    } else {
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

/// Returns the schema of one type.
pub(super) fn type_schema(
    shape: &WitType,
    direction: ValueDirection,
    path: &str,
    docs_at: DocLookup<'_>,
) -> Value {
    let inner = |shape: &WitType| type_schema(shape, direction, path, docs_at);
    match shape {
        WitType::Bool => json!({"type": "boolean"}),
        WitType::Integer(integer) => self::integer_schema(*integer, direction),
        WitType::Float32 => float_schema(
            json!({"type": "number", "minimum": f32_json(f32::MIN), "maximum": f32_json(f32::MAX)}),
            direction,
        ),
        WitType::Float64 => float_schema(json!({"type": "number"}), direction),
        WitType::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
        WitType::String => json!({"type": "string"}),
        WitType::Bytes => json!({
            "type": "string",
            "contentEncoding": "base64",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        }),
        WitType::List(item) => json!({"type": "array", "items": inner(item)}),
        WitType::Record(fields) => object_schema(fields, direction, path, docs_at),
        // Without `items: false`, because validators of draft 7 would forbid every item. `maxItems`
        // has the same effect.
        WitType::Tuple(items) => json!({
            "type": "array",
            "prefixItems": items.iter().map(inner).collect::<Vec<_>>(),
            "minItems": items.len(),
            "maxItems": items.len(),
        }),
        WitType::Variant(cases) => variant_schema(cases, direction, path, docs_at),
        WitType::Enum(names) => json!({"type": "string", "enum": names}),
        WitType::Flags(names) => {
            json!({"type": "array", "items": {"type": "string", "enum": names}, "uniqueItems": true})
        }
        WitType::Option(shape) => {
            json!({"anyOf": [option_content_schema(shape, direction, path, docs_at), {"type": "null"}]})
        }
        WitType::Result(ok, err) => {
            let side = |name: &str, shape: &Option<Box<WitType>>| {
                let schema = shape
                    .as_ref()
                    .map_or_else(|| json!({"type": "null"}), |shape| inner(shape));
                single_member_schema(name, &schema)
            };
            json!({"anyOf": [side("ok", ok), side("error", err)]})
        }
    }
}

/// Returns the schema of the content of an option. If the content itself can be `null`, it is
/// wrapped, so that "none" and "some of none" differ.
fn option_content_schema(
    shape: &WitType,
    direction: ValueDirection,
    path: &str,
    docs_at: DocLookup<'_>,
) -> Value {
    let schema = type_schema(shape, direction, path, docs_at);
    if shape.is_nullable() {
        single_member_schema("some", &schema)
    } else {
        schema
    }
}

/// Returns the schema of an object whose only member is `name`.
fn single_member_schema(name: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false})
}

/// Returns the schema of a variant. Cases without a payload are strings. The others are objects
/// with one member.
fn variant_schema(
    cases: &[(String, Option<WitType>)],
    direction: ValueDirection,
    path: &str,
    docs_at: DocLookup<'_>,
) -> Value {
    let plain_cases: Vec<&str> = cases
        .iter()
        .filter(|(_, shape)| shape.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut choices = Vec::new();
    if !plain_cases.is_empty() {
        choices.push(json!({"type": "string", "enum": plain_cases}));
    }
    for (name, shape) in cases {
        if let Some(shape) = shape {
            let path = format!("{path}/{name}");
            choices.push(single_member_schema(
                name,
                &type_schema(shape, direction, &path, docs_at),
            ));
        }
    }
    match <[Value; 1]>::try_from(choices) {
        Ok([only]) => only,
        Err(choices) => json!({"anyOf": choices}),
    }
}

fn integer_schema(integer: WitInteger, direction: ValueDirection) -> Value {
    let number = |(minimum, maximum)| json!({"type": "integer", "minimum": integer_json(minimum), "maximum": integer_json(maximum)});
    let (minimum, maximum) = integer.range();
    if !integer.is_wide() {
        return number((minimum, maximum));
    }
    let range = match direction {
        ValueDirection::Input => (minimum, maximum),
        ValueDirection::Output => (
            minimum.max(-MAX_EXACT_INTEGER),
            maximum.min(MAX_EXACT_INTEGER),
        ),
    };
    let digits = if minimum < 0 {
        "^-?[0-9]{1,19}$"
    } else {
        "^[0-9]{1,20}$"
    };
    // Clients that read JSON numbers as doubles would change large integers.
    json!({"anyOf": [number(range), {"type": "string", "pattern": digits}]})
}

/// Converts an integer of at most 64 bits to JSON.
pub(super) fn integer_json(n: i128) -> Value {
    match (i64::try_from(n), u64::try_from(n)) {
        (Ok(n), _) => n.into(),
        (_, Ok(n)) => n.into(),
        _ => Value::Null,
    }
}

fn float_schema(number: Value, direction: ValueDirection) -> Value {
    match direction {
        ValueDirection::Input => number,
        ValueDirection::Output => {
            json!({"anyOf": [number, {"type": "string", "enum": NON_FINITE_NAMES}]})
        }
    }
}

/// Returns the shortest JSON number that reads back as `n`.
pub(super) fn f32_json(n: f32) -> Value {
    // Converts through text, because `f64::from(0.1f32)` is 0.10000000149011612.
    n.to_string()
        .parse::<f64>()
        .map_or(Value::Null, Value::from)
}
