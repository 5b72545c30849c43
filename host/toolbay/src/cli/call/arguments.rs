//! The arguments of `toolbay call`: one JSON object, or `KEY=VALUE` with the types of the tool's
//! input schema.

use std::io::Read as _;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};
use toolbay_model::text::clean_line;
use toolbay_model::{similar_names, suggestion_question};

use super::argument_schema::ArgumentSchema;

/// Maximum length of a printed key or value, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Maximum size of a file whose content becomes an argument, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The arguments as the user wrote them.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum GivenArguments {
    /// All arguments, as JSON.
    Object(Map<String, Value>),
    /// One argument each. Their types are those of the tool's input schema.
    Pairs(Vec<ArgumentPair>),
}

/// `KEY=VALUE` or `KEY:=JSON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct ArgumentPair {
    key: String,
    /// True for `:=`, whose value is JSON of any type.
    is_json: bool,
    value: String,
}

/// The content of a value.
enum ValueContent {
    Text(String),
    /// The bytes of a file, which are not text.
    Binary(Vec<u8>),
}

/// Parses the arguments of the command line.
///
/// # Errors
///
/// An argument is neither JSON nor `KEY=VALUE`, or standard input cannot be read.
pub(in crate::cli) fn parse_arguments(given: &[String]) -> anyhow::Result<GivenArguments> {
    match given {
        [] => return Ok(GivenArguments::Object(Map::new())),
        [only] if only == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("failed to read the arguments from standard input")?;
            return parse_object(&text);
        }
        [only] if looks_like_json(only) || !only.contains('=') => return parse_object(only),
        _ => {}
    }
    let pairs = given.iter().map(|argument| parse_pair(argument));
    Ok(GivenArguments::Pairs(pairs.collect::<anyhow::Result<_>>()?))
}

fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn parse_object(text: &str) -> anyhow::Result<GivenArguments> {
    let context = if looks_like_json(text) {
        "the arguments are not valid JSON"
    } else {
        "the arguments are neither KEY=VALUE nor valid JSON"
    };
    match serde_json::from_str(text).context(context)? {
        Value::Object(arguments) => Ok(GivenArguments::Object(arguments)),
        _ => bail!(
            "the arguments must be a JSON object, such as '{{\"city\": \"Bern\"}}', or KEY=VALUE, such as city=Bern"
        ),
    }
}

fn parse_pair(argument: &str) -> anyhow::Result<ArgumentPair> {
    let shown = clean_line(argument, MAX_SHOWN_BYTES);
    let Some((key, value)) = argument.split_once('=') else {
        if looks_like_json(argument) || argument == "-" {
            bail!("{shown} cannot be combined with KEY=VALUE: give all arguments in one form");
        }
        bail!("{shown:?} is not KEY=VALUE; a value with spaces needs quotes: KEY=\"two words\"");
    };
    if looks_like_json(argument) {
        bail!("{shown} cannot be combined with KEY=VALUE: give all arguments in one form");
    }
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if key.is_empty() {
        bail!("{shown:?} has no key before the equals sign");
    }
    Ok(ArgumentPair {
        key: key.to_owned(),
        is_json,
        value: value.to_owned(),
    })
}

impl GivenArguments {
    /// Returns the arguments as an object. `schema` is the tool's input schema.
    ///
    /// # Errors
    ///
    /// A key is not in the schema, or a value does not have the type of its key.
    pub(in crate::cli) fn into_object(self, schema: &Value) -> anyhow::Result<Map<String, Value>> {
        let pairs = match self {
            Self::Object(arguments) => return Ok(arguments),
            Self::Pairs(pairs) => pairs,
        };
        let mut arguments = Map::new();
        let schema = ArgumentSchema::new(schema);
        for pair in &pairs {
            set_argument(&mut arguments, schema, &pair.key, pair)?;
        }
        Ok(arguments)
    }
}

/// Sets the argument `path`, the rest of the key of `pair`, in `object`.
fn set_argument(
    object: &mut Map<String, Value>,
    schema: ArgumentSchema<'_>,
    path: &str,
    pair: &ArgumentPair,
) -> anyhow::Result<()> {
    if let Some(property) = schema.declared_property(path) {
        return set_value(object, property, path, pair);
    }
    // A key can contain dots itself, so the longest declared one wins.
    let nested = path.rmatch_indices('.').find_map(|(dot, _)| {
        let (outer, inner) = (path.get(..dot)?, path.get(dot + 1..)?);
        Some((outer, schema.declared_property(outer)?, inner))
    });
    if let Some((outer, property, inner)) = nested {
        let inner_object = object
            .entry(outer)
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner_object) = inner_object else {
            bail!(
                "{} has a value already, so {} cannot be set in it",
                shown_key(outer),
                shown_key(&pair.key)
            );
        };
        return set_argument(inner_object, property, inner, pair);
    }
    if let Some(property) = schema.additional_property() {
        return set_value(object, property, path, pair);
    }
    if pair.is_json && path == pair.key && !path.contains('.') && schema.is_open() {
        return set_value(object, ArgumentSchema::new(&Value::Bool(true)), path, pair);
    }
    let names = schema.property_names();
    let similar = similar_names(path, names.iter().copied());
    let advice = if let Some(question) = suggestion_question(&similar) {
        question
    } else if names.is_empty() && path == pair.key {
        "the tool has no arguments".to_owned()
    } else if names.is_empty() {
        "the input schema declares no members there".to_owned()
    } else {
        let shown: Vec<&str> = names.iter().copied().take(20).collect();
        format!("expected one of {}", clean_line(&shown.join(", "), 1_000))
    };
    bail!("unknown argument {}; {advice}", shown_key(&pair.key));
}

fn set_value(
    object: &mut Map<String, Value>,
    schema: ArgumentSchema<'_>,
    key: &str,
    pair: &ArgumentPair,
) -> anyhow::Result<()> {
    let existing = object.get_mut(key);
    let is_list = schema.allows("array");
    match existing {
        // The key is given several times: each value is an item of the array.
        Some(Value::Array(items)) if is_list && !pair.is_json => {
            items.push(read_value(schema.items(), pair)?);
        }
        Some(_) => bail!(
            "{} is given twice, and it is not an array",
            shown_key(&pair.key)
        ),
        None => {
            let text_is_item = is_list
                && !schema.allows("string")
                && !pair.is_json
                && !pair.value.trim_start().starts_with('[');
            let value = if text_is_item {
                Value::Array(vec![read_value(schema.items(), pair)?])
            } else {
                read_value(schema, pair)?
            };
            object.insert(key.to_owned(), value);
        }
    }
    Ok(())
}

/// Returns the value of a pair, of a type that the schema allows.
fn read_value(schema: ArgumentSchema<'_>, pair: &ArgumentPair) -> anyhow::Result<Value> {
    let key = shown_key(&pair.key);
    let content = match pair.value.strip_prefix('@') {
        Some(path) => read_file(path, pair)?,
        None => ValueContent::Text(pair.value.clone()),
    };
    if pair.is_json {
        let ValueContent::Text(text) = content else {
            bail!("{key}: the file {} is not JSON", pair.value);
        };
        return serde_json::from_str(&text)
            .with_context(|| format!("the value of {key} is not valid JSON"));
    }
    let types = schema.types();
    if types.contains("string") {
        return match content {
            ValueContent::Text(text) if !schema.is_base64() || !pair.value.starts_with('@') => {
                Ok(Value::String(text))
            }
            ValueContent::Text(text) => Ok(Value::String(BASE64.encode(text))),
            ValueContent::Binary(bytes) if schema.is_base64() => {
                Ok(Value::String(BASE64.encode(bytes)))
            }
            ValueContent::Binary(_) => bail!(
                "{key}: the file {} is not UTF-8 text, and the tool does not declare that it takes base64",
                clean_line(&pair.value, MAX_SHOWN_BYTES)
            ),
        };
    }
    if types.is_empty() {
        bail!(
            "the input schema of the tool gives {key} no type: write its value as JSON, such as {key}:=5 or {key}:='\"text\"'"
        );
    }
    let expected = types.iter().copied().collect::<Vec<_>>().join(" or ");
    let ValueContent::Text(text) = content else {
        bail!(
            "{key} must be {expected}, and the file {} is not text",
            pair.value
        );
    };
    let value = serde_json::from_str::<Value>(&text).ok();
    value
        .filter(|value| schema.accepts(value))
        .with_context(|| {
            let advice = if types.contains("object") {
                format!(": give it as JSON, or its members as {key}.NAME=VALUE")
            } else {
                String::new()
            };
            format!(
                "{key} must be {expected}, not {:?}{advice}",
                clean_line(&text, MAX_SHOWN_BYTES)
            )
        })
}

/// Reads the file of a value `@FILE`, or standard input for `@-`.
fn read_file(path: &str, pair: &ArgumentPair) -> anyhow::Result<ValueContent> {
    let key = shown_key(&pair.key);
    let mut bytes = Vec::new();
    let read = if path == "-" {
        std::io::stdin()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let advice = if pair.is_json {
            String::new()
        } else {
            format!("; for a text that starts with @, write {key}:='\"@…\"'")
        };
        anyhow::anyhow!(
            "{key}: cannot read the file {}: {}{advice}",
            clean_line(path, MAX_SHOWN_BYTES),
            error.kind()
        )
    })?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        bail!(
            "{key}: the file {} is larger than {} MiB",
            clean_line(path, MAX_SHOWN_BYTES),
            MAX_FILE_BYTES >> 20
        );
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => ValueContent::Text(text),
        Err(error) => ValueContent::Binary(error.into_bytes()),
    })
}

fn shown_key(key: &str) -> String {
    clean_line(key, MAX_SHOWN_BYTES)
}

#[cfg(test)]
mod tests;
