//! Lossless conversion of values between JSON and WIT.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasmtime::component::Val;

use super::schema::{MAX_EXACT_INTEGER, NON_FINITE_NAMES, f32_json, integer_json};
use super::wit_type::{WitInteger, WitType};

/// Standard base64 with padding, as MCP and the pattern in the schema require. Decoding ignores
/// meaningless trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Converts the members of an object to values in the order of `members`: arguments, or the fields
/// of a record. `remaining` is the number of values that may still be created.
///
/// # Errors
///
/// Returns the JSON Pointer to the value that does not match, and the expected type.
pub(super) fn from_object(
    members: &[(String, WitType)],
    object: &Map<String, Value>,
    path: &str,
    remaining: &mut usize,
) -> Result<Vec<Val>, String> {
    if let Some(unknown) = object
        .keys()
        .find(|key| !members.iter().any(|(name, _)| name == *key))
    {
        return Err(format!("{path}/{unknown}: unknown member"));
    }
    let value = |(name, shape): &(String, WitType)| {
        let path = format!("{path}/{name}");
        match object.get(name) {
            Some(value) => from_json(shape, value, &path, remaining),
            None if shape.is_nullable() => Ok(Val::Option(None)),
            None => Err(format!("{path}: required, but missing")),
        }
    };
    members.iter().map(value).collect()
}

/// Converts JSON to a value.
///
/// # Errors
///
/// Like [`from_object`].
pub(super) fn from_json(
    shape: &WitType,
    json: &Value,
    path: &str,
    remaining: &mut usize,
) -> Result<Val, String> {
    let mismatch = |expected: &str| {
        format!(
            "{}: expected {expected}",
            if path.is_empty() { "(root)" } else { path }
        )
    };
    take_values(remaining, 1, path)?;
    let mut boxed = |shape: &WitType, json: &Value, path: &str| {
        from_json(shape, json, path, remaining).map(Box::new)
    };
    Ok(match shape {
        WitType::Bool => Val::Bool(json.as_bool().ok_or_else(|| mismatch("true or false"))?),
        WitType::Integer(integer) => {
            integer_from_json(*integer, json).map_err(|expected| mismatch(&expected))?
        }
        WitType::Float32 => {
            let n = json.as_f64().ok_or_else(|| mismatch("a number"))?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rounding to the nearest is what f32 means"
            )]
            let n = n as f32;
            Val::Float32(if n.is_finite() {
                n
            } else {
                return Err(mismatch("a number within the range of f32"));
            })
        }
        WitType::Float64 => Val::Float64(json.as_f64().ok_or_else(|| mismatch("a number"))?),
        WitType::Char => {
            let mut chars = json.as_str().unwrap_or_default().chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Val::Char(c),
                _ => return Err(mismatch("a string of one character")),
            }
        }
        WitType::String => Val::String(
            json.as_str()
                .ok_or_else(|| mismatch("a string"))?
                .to_owned(),
        ),
        WitType::Bytes => {
            let bytes = json.as_str().and_then(|text| BASE64.decode(text).ok());
            let bytes = bytes.ok_or_else(|| mismatch("a base64 string"))?;
            take_values(remaining, bytes.len(), path)?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        WitType::List(item) => {
            let items = json
                .as_array()
                .ok_or_else(|| mismatch("an array"))?
                .iter()
                .enumerate();
            Val::List(
                items
                    .map(|(n, value)| from_json(item, value, &format!("{path}/{n}"), remaining))
                    .collect::<Result<_, _>>()?,
            )
        }
        WitType::Record(fields) => {
            let object = json.as_object().ok_or_else(|| mismatch("an object"))?;
            let names = fields.iter().map(|(name, _)| name.clone());
            Val::Record(
                names
                    .zip(from_object(fields, object, path, remaining)?)
                    .collect(),
            )
        }
        WitType::Tuple(shapes) => {
            let items = json.as_array().filter(|items| items.len() == shapes.len());
            let items = items
                .ok_or_else(|| mismatch(&format!("an array of exactly {} items", shapes.len())))?;
            let items = shapes.iter().zip(items).enumerate();
            Val::Tuple(
                items
                    .map(|(n, (shape, value))| {
                        from_json(shape, value, &format!("{path}/{n}"), remaining)
                    })
                    .collect::<Result<_, _>>()?,
            )
        }
        WitType::Variant(cases) => {
            let (name, payload) = parse_case(json).ok_or_else(|| {
                mismatch("the name of a case, or an object whose only member is a case")
            })?;
            let case = cases
                .iter()
                .find(|(case, shape)| case == name && shape.is_some() == payload.is_some());
            let Some((case, shape)) = case else {
                return Err(mismatch(&one_of(cases.iter().map(|(name, _)| name))));
            };
            let payload = shape.as_ref().zip(payload);
            let payload = payload
                .map(|(shape, json)| boxed(shape, json, &format!("{path}/{name}")))
                .transpose()?;
            Val::Variant(case.clone(), payload)
        }
        WitType::Enum(names) => {
            let name = json
                .as_str()
                .filter(|name| names.iter().any(|allowed| allowed == name));
            Val::Enum(
                name.ok_or_else(|| mismatch(&one_of(names.iter())))?
                    .to_owned(),
            )
        }
        WitType::Flags(names) => {
            let items = json
                .as_array()
                .ok_or_else(|| mismatch("an array"))?
                .iter()
                .enumerate();
            let flag = |(n, value): (usize, &Value)| {
                let name = value
                    .as_str()
                    .filter(|name| names.iter().any(|allowed| allowed == name));
                name.map(str::to_owned)
                    .ok_or_else(|| format!("{path}/{n}: expected {}", one_of(names.iter())))
            };
            Val::Flags(items.map(flag).collect::<Result<_, _>>()?)
        }
        WitType::Option(_) if json.is_null() => Val::Option(None),
        WitType::Option(inner) if inner.is_nullable() => {
            let Some(("some", Some(json))) = parse_case(json) else {
                return Err(mismatch("null or an object with the member `some`"));
            };
            Val::Option(Some(boxed(inner, json, &format!("{path}/some"))?))
        }
        WitType::Option(inner) => Val::Option(Some(boxed(inner, json, path)?)),
        WitType::Result(ok, err) => {
            let (name, payload) = parse_case(json)
                .ok_or_else(|| mismatch("an object with the member `ok` or `error`"))?;
            let path = format!("{path}/{name}");
            let mut convert_side = |shape: &Option<Box<WitType>>| match (shape, payload) {
                (Some(shape), Some(json)) => boxed(shape, json, &path).map(Some),
                (None, Some(Value::Null)) => Ok(None),
                _ => Err(mismatch("an object with the member `ok` or `error`")),
            };
            match name {
                "ok" => Val::Result(Ok(convert_side(ok)?)),
                "error" => Val::Result(Err(convert_side(err)?)),
                _ => return Err(mismatch("an object with the member `ok` or `error`")),
            }
        }
    })
}

/// Converts an integer, or returns a description of the expected values.
fn integer_from_json(integer: WitInteger, json: &Value) -> Result<Val, String> {
    let (minimum, maximum) = integer.range();
    let n = parse_integer(json, integer.is_wide()).filter(|n| (minimum..=maximum).contains(n));
    let expected = || {
        let digits = if json.is_f64() {
            ", written in digits only"
        } else {
            ""
        };
        format!("an integer from {minimum} to {maximum}{digits}")
    };
    Ok(integer_to_val(integer, n.ok_or_else(expected)?))
}

/// Converts a value to JSON. Returns `None` if the value does not match the type, which a guest
/// cannot cause.
pub(super) fn to_json(shape: &WitType, val: &Val) -> Option<Value> {
    Some(match (shape, val) {
        (WitType::Bool, Val::Bool(value)) => (*value).into(),
        (WitType::Integer(_), val) => {
            let n = val_to_integer(val)?;
            if (-MAX_EXACT_INTEGER..=MAX_EXACT_INTEGER).contains(&n) {
                integer_json(n)
            } else {
                n.to_string().into()
            }
        }
        (WitType::Float32, Val::Float32(n)) if n.is_finite() => f32_json(*n),
        (WitType::Float32, Val::Float32(n)) => non_finite_name(f64::from(*n)).into(),
        (WitType::Float64, Val::Float64(n)) if n.is_finite() => (*n).into(),
        (WitType::Float64, Val::Float64(n)) => non_finite_name(*n).into(),
        // Control characters are removed from a guest's text, but a `char` cannot be empty.
        (WitType::Char, Val::Char(c)) => {
            match toolbay_model::text::clean(c.encode_utf8(&mut [0; 4])).as_ref() {
                "" => char::REPLACEMENT_CHARACTER.to_string().into(),
                text => text.into(),
            }
        }
        (WitType::String, Val::String(text)) => text.as_str().into(),
        (WitType::Bytes, Val::List(items)) => {
            let bytes = items.iter().map(|item| {
                if let Val::U8(byte) = item {
                    Some(*byte)
                } else {
                    None
                }
            });
            BASE64.encode(bytes.collect::<Option<Vec<u8>>>()?).into()
        }
        (WitType::List(item), Val::List(items)) => Value::Array(
            items
                .iter()
                .map(|value| to_json(item, value))
                .collect::<Option<_>>()?,
        ),
        (WitType::Record(fields), Val::Record(values)) => {
            let mut object = Map::new();
            for ((name, shape), (_, value)) in fields.iter().zip(values) {
                match (shape, value) {
                    (WitType::Option(_), Val::Option(None)) => {}
                    _ => drop(object.insert(name.clone(), to_json(shape, value)?)),
                }
            }
            Value::Object(object)
        }
        (WitType::Tuple(shapes), Val::Tuple(values)) => {
            let values = shapes
                .iter()
                .zip(values)
                .map(|(shape, value)| to_json(shape, value));
            Value::Array(values.collect::<Option<_>>()?)
        }
        (WitType::Variant(cases), Val::Variant(name, payload)) => {
            let (_, shape) = cases.iter().find(|(case, _)| case == name)?;
            match (shape, payload) {
                (Some(shape), Some(value)) => single_member_object(name, to_json(shape, value)?),
                _ => name.as_str().into(),
            }
        }
        (WitType::Enum(_), Val::Enum(name)) => name.as_str().into(),
        (WitType::Flags(_), Val::Flags(names)) => names.iter().map(String::as_str).collect(),
        (WitType::Option(_), Val::Option(None)) => Value::Null,
        (WitType::Option(inner), Val::Option(Some(value))) => {
            let json = to_json(inner, value)?;
            if inner.is_nullable() {
                single_member_object("some", json)
            } else {
                json
            }
        }
        (WitType::Result(ok, err), Val::Result(result)) => {
            let (name, shape, value) = match result {
                Ok(value) => ("ok", ok, value),
                Err(value) => ("error", err, value),
            };
            let json = match (shape, value) {
                (Some(shape), Some(value)) => to_json(shape, value)?,
                _ => Value::Null,
            };
            single_member_object(name, json)
        }
        _ => return None,
    })
}

/// Deducts `n` values from `remaining`.
fn take_values(remaining: &mut usize, n: usize, path: &str) -> Result<(), String> {
    *remaining = remaining
        .checked_sub(n)
        .ok_or_else(|| format!("{path}: too many values (to allow more, raise limits.transfer)"))?;
    Ok(())
}

fn single_member_object(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

/// Parses a case of a variant: a string, or an object with one member.
fn parse_case(json: &Value) -> Option<(&str, Option<&Value>)> {
    match json {
        Value::String(name) => Some((name, None)),
        Value::Object(members) => {
            let mut members = members.iter();
            match (members.next(), members.next()) {
                (Some((name, value)), None) => Some((name, Some(value))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Parses an integer. Also accepts `1.0` and `1e3`, which are integers in JSON Schema, within the
/// exact range, and strings if `allows_text` is set.
fn parse_integer(json: &Value, allows_text: bool) -> Option<i128> {
    match json {
        Value::Number(n) => {
            let exact = n
                .as_i64()
                .map(i128::from)
                .or_else(|| n.as_u64().map(i128::from));
            exact.or_else(|| {
                let n = n.as_f64().filter(|n| n.fract() == 0.0)?;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "it is whole, and `as` saturates"
                )]
                let n = n as i128;
                // Beyond this range, parsing may have rounded the number.
                (-MAX_EXACT_INTEGER..=MAX_EXACT_INTEGER)
                    .contains(&n)
                    .then_some(n)
            })
        }
        Value::String(text) if allows_text => text.parse().ok(),
        _ => None,
    }
}

/// Converts an integer, which must be in range, to a value of its type.
fn integer_to_val(integer: WitInteger, n: i128) -> Val {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the caller checked the range"
    )]
    match integer {
        WitInteger::S8 => Val::S8(n as i8),
        WitInteger::U8 => Val::U8(n as u8),
        WitInteger::S16 => Val::S16(n as i16),
        WitInteger::U16 => Val::U16(n as u16),
        WitInteger::S32 => Val::S32(n as i32),
        WitInteger::U32 => Val::U32(n as u32),
        WitInteger::S64 => Val::S64(n as i64),
        WitInteger::U64 => Val::U64(n as u64),
    }
}

fn val_to_integer(val: &Val) -> Option<i128> {
    Some(match val {
        Val::S8(n) => (*n).into(),
        Val::U8(n) => (*n).into(),
        Val::S16(n) => (*n).into(),
        Val::U16(n) => (*n).into(),
        Val::S32(n) => (*n).into(),
        Val::U32(n) => (*n).into(),
        Val::S64(n) => (*n).into(),
        Val::U64(n) => (*n).into(),
        _ => return None,
    })
}

fn non_finite_name(n: f64) -> &'static str {
    let [nan, infinity, minus_infinity] = NON_FINITE_NAMES;
    if n.is_nan() {
        nan
    } else if n > 0.0 {
        infinity
    } else {
        minus_infinity
    }
}

fn one_of<'a>(names: impl Iterator<Item = &'a String>) -> String {
    format!(
        "one of {}",
        names
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}
