//! Conversion of submitted form values to tool arguments.

use serde_json::{Map, Number, Value};

use super::field::{FieldKind, FieldValues, FormField};

/// Errors of fields, by their names.
type FieldErrors = Vec<(String, String)>;

/// Converts the values of these fields to arguments. Omits empty fields, except required strings
/// and required lists.
pub(super) fn parse_arguments(
    fields: &[FormField],
    values: &FieldValues,
) -> Result<Map<String, Value>, FieldErrors> {
    let mut arguments = Map::new();
    let mut errors = Vec::new();
    for field in fields {
        match parse_value(field, values) {
            Ok(Some(value)) => drop(arguments.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(field_errors) => errors.extend(field_errors),
        }
    }
    if errors.is_empty() {
        Ok(arguments)
    } else {
        Err(errors)
    }
}

fn parse_value(field: &FormField, values: &FieldValues) -> Result<Option<Value>, FieldErrors> {
    let text = values
        .get(&field.id)
        .map(String::as_str)
        .unwrap_or_default();
    let field_error = |message: String| vec![(field.id.clone(), message)];
    match &field.kind {
        FieldKind::Group(fields) => {
            let object = parse_arguments(fields, values)?;
            return Ok((field.required || !object.is_empty()).then_some(Value::Object(object)));
        }
        FieldKind::Text { .. } if text.is_empty() && !field.required => return Ok(None),
        FieldKind::Text { .. } => return Ok(Some(normalize_line_ends(text).into())),
        _ if text.trim().is_empty() => {
            return match (&field.kind, field.required) {
                (FieldKind::List { .. }, true) => Ok(Some(Value::Array(Vec::new()))),
                // The server reports missing required arguments.
                _ => Ok(None),
            };
        }
        _ => {}
    }
    let text = text.trim();
    let value = match &field.kind {
        FieldKind::Number { whole } => parse_number(text, *whole).map_err(field_error)?,
        FieldKind::Choice(choices) => {
            let chosen = text.parse::<usize>().ok().and_then(|at| choices.get(at));
            chosen
                .map(|(_, value)| value.clone())
                .ok_or_else(|| field_error("choose one of the list".to_owned()))?
        }
        FieldKind::List { numbers } => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let items = lines.map(|line| {
                if *numbers {
                    parse_number(line, false)
                } else {
                    Ok(line.into())
                }
            });
            Value::Array(items.collect::<Result<_, _>>().map_err(field_error)?)
        }
        _ => serde_json::from_str(text)
            .map_err(|error| field_error(format!("expected JSON: {error}")))?,
    };
    Ok(Some(value))
}

/// Parses a JSON number without loss of precision.
fn parse_number(text: &str, is_integer: bool) -> Result<Value, String> {
    let expected = || {
        format!(
            "expected {}, not {text:?}",
            if is_integer { "an integer" } else { "a number" }
        )
    };
    let number: Number = serde_json::from_str(text).map_err(|_| expected())?;
    if is_integer && number.is_f64() {
        Err(expected())
    } else {
        Ok(number.into())
    }
}

/// Converts CR LF to LF, because browsers send CR LF line ends.
fn normalize_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}
