//! `x-mcp-header` in an input schema: arguments that clients repeat in HTTP headers, for
//! intermediaries such as proxies.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolbay_model::{HeaderKind, ParamHeader};

/// The schema keyword.
const KEYWORD: &str = "x-mcp-header";

/// Maximum number of headers that a tool may request. Servers accept about a hundred in one
/// request.
const MAX_HEADERS: usize = 64;

/// Returns the headers that a schema declares.
///
/// # Errors
///
/// The keyword is invalid, or in a place where clients do not accept it; they would omit the tool.
pub(crate) fn declared_headers(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut headers = Vec::new();
    collect_headers(schema, Some(&mut Vec::new()), &mut headers)?;
    if headers.len() > MAX_HEADERS {
        return Err(format!(
            "{KEYWORD} is used {} times, but a request can have at most {MAX_HEADERS} such headers",
            headers.len()
        ));
    }
    let mut names = HashSet::new();
    match headers
        .iter()
        .find(|header| !names.insert(header.name.to_ascii_lowercase()))
    {
        Some(duplicate) => Err(format!(
            "{KEYWORD} {:?} is used twice (names are case-insensitive)",
            duplicate.name
        )),
        None => Ok(headers),
    }
}

/// Collects the headers of a schema and its subschemas. `path` leads to the schema through
/// properties only; `None` if there is no such path.
fn collect_headers(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Some(members) = schema.as_object() else {
        return Ok(());
    };
    if let Some(name) = members.get(KEYWORD) {
        headers.push(parse_header(
            name,
            members,
            path.as_deref().map(Vec::as_slice),
        )?);
    }
    for (key, value) in members {
        if key == "properties" {
            for (name, property) in value.as_object().into_iter().flatten() {
                if let Some(path) = path.as_deref_mut() {
                    path.push(name.clone());
                    collect_headers(property, Some(path), headers)?;
                    path.pop();
                } else {
                    collect_headers(property, None, headers)?;
                }
            }
        } else {
            toolbay_schema::subschemas(key, value)
                .into_iter()
                .try_for_each(|schema| collect_headers(schema, None, headers))?;
        }
    }
    Ok(())
}

fn parse_header(
    name: &Value,
    schema: &Map<String, Value>,
    path: Option<&[String]>,
) -> Result<ParamHeader, String> {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = name.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_token_byte)).ok_or_else(|| {
        format!("{KEYWORD} {name} is not a valid header name: use letters, digits and !#$%&'*+-.^_`|~")
    })?;
    let misplaced = || {
        format!(
            "{KEYWORD} {name:?} must be on a property that is reached through `properties` only"
        )
    };
    let path = path.filter(|path| !path.is_empty()).ok_or_else(misplaced)?;
    let kind = match schema.get("type").and_then(Value::as_str) {
        Some("string") => HeaderKind::String,
        Some("integer") => HeaderKind::Integer,
        Some("boolean") => HeaderKind::Boolean,
        _ => {
            return Err(format!(
                "{KEYWORD} {name:?} must be on a property of type string, integer or boolean"
            ));
        }
    };
    Ok(ParamHeader {
        name: name.to_owned(),
        path: path.to_vec(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_are_found_with_their_paths() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", KEYWORD: "Region"},
            "at": {"type": "object", "properties": {"n": {"type": "integer", KEYWORD: "N"}}},
            // A property with the keyword's name does not count, nor does data that looks like the
            // keyword.
            KEYWORD: {"type": "string", "enum": [{KEYWORD: "x"}], "default": {KEYWORD: "y"}},
        }});
        let found = declared_headers(&schema).unwrap();
        let paths: Vec<String> = found
            .iter()
            .map(|h| format!("{} {} {:?}", h.name, h.path.join("."), h.kind))
            .collect();
        assert_eq!(paths, ["Region region String", "N at.n Integer"]);
    }

    #[test]
    fn schemas_that_clients_would_reject_are_refused() {
        let on = |schema: Value| {
            declared_headers(&json!({"type": "object", "properties": {"a": schema}})).unwrap_err()
        };
        let named = |name: Value| on(json!({"type": "string", KEYWORD: name}));
        let marked = || json!({"type": "string", KEYWORD: "A"});
        let many = |count| {
            let marked = |n| {
                (
                    format!("p{n}"),
                    json!({"type": "string", KEYWORD: format!("P{n}")}),
                )
            };
            (0..count).map(marked).collect::<Map<_, _>>()
        };
        let said = [
            named(json!("")),
            named(json!("a b")),
            named(json!("a\r\nb")),
            named(json!(7)),
            on(json!({"type": "number", KEYWORD: "A"})),
            on(json!({"type": ["string", "null"], KEYWORD: "A"})),
            on(json!({KEYWORD: "A"})),
            on(json!({"type": "array", "items": marked()})),
            on(json!({"anyOf": [{"properties": {"b": marked()}}]})),
            on(json!({"$defs": {"b": marked()}})),
            declared_headers(&json!({"type": "object", KEYWORD: "A"})).unwrap_err(),
            declared_headers(
                &json!({"properties": {"a": marked(), "b": {"type": "string", KEYWORD: "a"}}}),
            )
            .unwrap_err(),
            declared_headers(&json!({"properties": many(65)})).unwrap_err(),
        ];
        assert_eq!(
            declared_headers(&json!({"properties": many(64)}))
                .unwrap()
                .len(),
            64
        );
        insta::assert_snapshot!(said.join("\n"));
    }
}
