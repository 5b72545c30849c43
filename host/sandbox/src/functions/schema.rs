//! JSON Schema for WIT types. Uses only plain keywords that strict clients accept, and no
//! references.

use serde_json::{Map, Value, json};

use super::shape::{Integer, Shape};

/// The direction of a value. A guest may return values that a model may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Arguments.
    Input,
    /// Results.
    Output,
}

/// Maximum integer that is exact as a JSON number in every client (RFC 8259, section 6).
pub(super) const EXACT: i128 = (1 << 53) - 1;

/// Strings that represent floats that are not JSON numbers, in results.
pub(super) const NOT_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Looks up the documentation of the value at a path such as `/request/units`.
pub(super) type Words<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the schema of an object with these members: parameters, or the fields of a record.
pub(super) fn object(members: &[(String, Shape)], direction: Direction, path: &str, words: Words<'_>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, shape) in members {
        let path = format!("{path}/{name}");
        let (mut schema, optional) = match (shape, direction) {
            // Results omit these members, so `null` is not among their values.
            (Shape::Option(inner), Direction::Output) => (some(inner, direction, &path, words), true),
            (Shape::Option(_), Direction::Input) => (of(shape, direction, &path, words), true),
            _ => (of(shape, direction, &path, words), false),
        };
        if let (Some(text), Value::Object(schema)) = (words(&path), &mut schema) {
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
pub(super) fn of(shape: &Shape, direction: Direction, path: &str, words: Words<'_>) -> Value {
    let inner = |shape: &Shape| of(shape, direction, path, words);
    match shape {
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Integer(integer) => self::integer(*integer, direction),
        Shape::Float32 => {
            float(json!({"type": "number", "minimum": f32_json(f32::MIN), "maximum": f32_json(f32::MAX)}), direction)
        }
        Shape::Float64 => float(json!({"type": "number"}), direction),
        Shape::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
        Shape::String => json!({"type": "string"}),
        Shape::Bytes => json!({
            "type": "string",
            "contentEncoding": "base64",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        }),
        Shape::List(item) => json!({"type": "array", "items": inner(item)}),
        Shape::Record(fields) => object(fields, direction, path, words),
        // Without `items: false`, because validators of draft 7 would forbid every item. `maxItems`
        // has the same effect.
        Shape::Tuple(items) => json!({
            "type": "array",
            "prefixItems": items.iter().map(inner).collect::<Vec<_>>(),
            "minItems": items.len(),
            "maxItems": items.len(),
        }),
        Shape::Variant(cases) => variant(cases, direction, path, words),
        Shape::Enum(names) => json!({"type": "string", "enum": names}),
        Shape::Flags(names) => {
            json!({"type": "array", "items": {"type": "string", "enum": names}, "uniqueItems": true})
        }
        Shape::Option(shape) => json!({"anyOf": [some(shape, direction, path, words), {"type": "null"}]}),
        Shape::Result(ok, err) => {
            let side = |name: &str, shape: &Option<Box<Shape>>| {
                let schema = shape.as_ref().map_or_else(|| json!({"type": "null"}), |shape| inner(shape));
                tagged(name, &schema)
            };
            json!({"anyOf": [side("ok", ok), side("error", err)]})
        }
    }
}

/// Returns the schema of the content of an option. If the content itself can be `null`, it is
/// wrapped, so that "none" and "some of none" differ.
fn some(shape: &Shape, direction: Direction, path: &str, words: Words<'_>) -> Value {
    let schema = of(shape, direction, path, words);
    if shape.is_nullable() { tagged("some", &schema) } else { schema }
}

/// Returns the schema of an object whose only member is `name`.
fn tagged(name: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false})
}

/// Returns the schema of a variant. Cases without a payload are strings. The others are objects
/// with one member.
fn variant(cases: &[(String, Option<Shape>)], direction: Direction, path: &str, words: Words<'_>) -> Value {
    let plain: Vec<&str> = cases.iter().filter(|(_, shape)| shape.is_none()).map(|(name, _)| name.as_str()).collect();
    let mut choices = Vec::new();
    if !plain.is_empty() {
        choices.push(json!({"type": "string", "enum": plain}));
    }
    for (name, shape) in cases {
        if let Some(shape) = shape {
            let path = format!("{path}/{name}");
            choices.push(tagged(name, &of(shape, direction, &path, words)));
        }
    }
    match <[Value; 1]>::try_from(choices) {
        Ok([only]) => only,
        Err(choices) => json!({"anyOf": choices}),
    }
}

fn integer(integer: Integer, direction: Direction) -> Value {
    let number = |(least, most)| json!({"type": "integer", "minimum": number(least), "maximum": number(most)});
    let (least, most) = integer.range();
    if !integer.is_wide() {
        return number((least, most));
    }
    let range = match direction {
        Direction::Input => (least, most),
        Direction::Output => (least.max(-EXACT), most.min(EXACT)),
    };
    let digits = if least < 0 { "^-?[0-9]{1,19}$" } else { "^[0-9]{1,20}$" };
    // Clients that read JSON numbers as doubles would change large integers.
    json!({"anyOf": [number(range), {"type": "string", "pattern": digits}]})
}

/// Converts an integer of at most 64 bits to JSON.
pub(super) fn number(n: i128) -> Value {
    match (i64::try_from(n), u64::try_from(n)) {
        (Ok(n), _) => n.into(),
        (_, Ok(n)) => n.into(),
        _ => Value::Null,
    }
}

fn float(number: Value, direction: Direction) -> Value {
    match direction {
        Direction::Input => number,
        Direction::Output => json!({"anyOf": [number, {"type": "string", "enum": NOT_NUMBERS}]}),
    }
}

/// Returns the shortest JSON number that reads back as `n`.
pub(super) fn f32_json(n: f32) -> Value {
    // Converts through text, because `f64::from(0.1f32)` is 0.10000000149011612.
    n.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}
