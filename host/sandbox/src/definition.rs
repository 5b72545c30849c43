//! What a plugin says of a tool, without what only acts on whoever reads it.
//!
//! Titles, descriptions and `_meta` are there to be read: control characters go. In a schema they go from what is there
//! to be read as well. What checking goes by stays as it is, such as `const`, `enum`, `pattern` and the names of
//! properties: without a character it would be another schema. An icon is fetched and drawn by clients: one that is not
//! what MCP allows is dropped.

use serde_json::Value;
use toolbay_model::text::{clean, line};
use toolbay_model::{Icon, ToolDefinition};

use crate::output::{is_mime_type, is_uri};

/// Keywords whose values take part in checking, or are values themselves: they are not text to read.
const MEANT: [&str; 21] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "enum",
    "examples",
    "format",
    "id",
    "pattern",
    "required",
    "type",
    "x-mcp-header",
];

/// Keywords whose members are schemas under names of the author's choice.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Longest name or address in a remark, in bytes.
const SHOWN: usize = 200;

/// How many tools with icons that are dropped are named to the operator.
const NAMED_TOOLS: usize = 10;

/// The tools with their texts cleaned, and what the operator should know of what was dropped.
pub(crate) fn cleaned(tools: Vec<ToolDefinition>) -> (Vec<ToolDefinition>, Vec<String>) {
    let mut remarks = Vec::new();
    let mut more = 0_u32;
    let tools = tools.into_iter().map(|mut tool| {
        if let Some(why) = drop_icons(&mut tool.icons) {
            if remarks.len() < NAMED_TOOLS {
                remarks.push(format!("tool {:?}: an icon is not shown: {why}", line(&tool.name, SHOWN)));
            } else {
                more += 1;
            }
        }
        tool_cleaned(tool)
    });
    let tools = tools.collect();
    if more > 0 {
        remarks.push(format!("{more} more tools have icons that are not shown"));
    }
    (tools, remarks)
}

/// Drops the icons that clients must not be given. Returns why the first of these is.
fn drop_icons(icons: &mut Vec<Icon>) -> Option<String> {
    let mut first = None;
    let cleaned = std::mem::take(icons).into_iter().map(icon_cleaned);
    *icons = cleaned.filter_map(|icon| icon.map_err(|why| first.get_or_insert(why)).ok()).collect();
    first
}

fn tool_cleaned(tool: ToolDefinition) -> ToolDefinition {
    ToolDefinition {
        title: tool.title.map(text),
        description: tool.description.map(text),
        input_schema: json(tool.input_schema, schema),
        output_schema: tool.output_schema.map(|text| json(text, schema)),
        meta: tool.meta.map(|text| json(text, every_text)),
        ..tool
    }
}

fn text(text: String) -> String {
    match clean(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(cleaned) => cleaned,
    }
}

/// JSON text with `change` made to its value. What is not JSON stays as it is: whoever checks it says so.
fn json(text: String, change: fn(&mut Value)) -> String {
    // As in almost all of it: nothing in it can act, not even when it is unescaped.
    if !text.contains("\\u") && matches!(clean(&text), std::borrow::Cow::Borrowed(_)) {
        return text;
    }
    let Ok(mut value) = serde_json::from_str(&text) else { return text };
    change(&mut value);
    value.to_string()
}

/// Cleans every text in `value`, and the names of its members.
fn every_text(value: &mut Value) {
    match value {
        Value::String(text) => clean_in_place(text),
        Value::Array(items) => items.iter_mut().for_each(every_text),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(name, mut member)| {
                    every_text(&mut member);
                    (text(name), member)
                })
                .collect();
        }
        _ => {}
    }
}

/// Cleans what is to be read in a schema.
fn schema(schema: &mut Value) {
    match schema {
        Value::String(text) => clean_in_place(text),
        Value::Array(schemas) => schemas.iter_mut().for_each(self::schema),
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut().filter(|(keyword, _)| !MEANT.contains(&keyword.as_str())) {
                match value {
                    Value::Object(schemas) if NAMED.contains(&keyword.as_str()) => {
                        // A dependency may also be a list of names.
                        schemas.values_mut().filter(|schema| !schema.is_array()).for_each(self::schema);
                    }
                    value => self::schema(value),
                }
            }
        }
        _ => {}
    }
}

fn clean_in_place(text: &mut String) {
    *text = self::text(std::mem::take(text));
}

/// # Errors
///
/// Why no client may be given it.
fn icon_cleaned(icon: Icon) -> Result<Icon, String> {
    let shown = line(&icon.src, SHOWN);
    let (scheme, rest) = icon.src.split_once(':').unwrap_or_default();
    let allowed = match scheme.to_ascii_lowercase().as_str() {
        "https" => rest.strip_prefix("//").is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty()),
        "data" => rest.get(..6).is_some_and(|family| family.eq_ignore_ascii_case("image/")),
        _ => false,
    };
    if !allowed || !is_uri(&icon.src) || clean(&icon.src) != icon.src {
        return Err(format!("its address must begin with https:// or data:image/, not {shown:?}"));
    }
    if let Some(mime_type) = &icon.mime_type
        && !(mime_type.starts_with("image/") && is_mime_type(mime_type))
    {
        return Err(format!("its MIME type must be image/…, not {:?}", line(mime_type, SHOWN)));
    }
    Ok(Icon { sizes: icon.sizes.into_iter().map(text).collect(), ..icon })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EVIL: &str = "a\u{1b}[2J\u{202e}b\u{9b}1m\u{e0041}c";

    fn icon(src: &str) -> Icon {
        Icon { src: src.into(), mime_type: None, sizes: vec!["48x48\u{202e}".into()], theme: None }
    }

    #[test]
    fn what_is_read_is_cleaned_and_what_is_checked_by_stays() {
        let before = json!({
            "type": "object",
            "title": EVIL,
            "$comment": EVIL,
            "properties": {
                // Properties may be called like keywords.
                "pattern": {"description": EVIL, "pattern": EVIL, "default": EVIL},
                EVIL: {"enum": [EVIL], "const": {"title": EVIL}, "examples": [EVIL], "x-words": [{"de": EVIL}]},
            },
            "required": [EVIL],
            "allOf": [{"description": EVIL}, {"if": {"title": EVIL}, "$ref": format!("#/$defs/{EVIL}")}],
            "$defs": {EVIL: {"description": EVIL}},
            "dependencies": {"a": [EVIL], "b": {"title": EVIL}},
        });
        let after = json!({
            "type": "object",
            "title": "abc",
            "$comment": "abc",
            "properties": {
                "pattern": {"description": "abc", "pattern": EVIL, "default": EVIL},
                EVIL: {"enum": [EVIL], "const": {"title": EVIL}, "examples": [EVIL], "x-words": [{"de": "abc"}]},
            },
            "required": [EVIL],
            "allOf": [{"description": "abc"}, {"if": {"title": "abc"}, "$ref": format!("#/$defs/{EVIL}")}],
            "$defs": {EVIL: {"description": "abc"}},
            "dependencies": {"a": [EVIL], "b": {"title": "abc"}},
        });
        let tool = ToolDefinition {
            title: Some(EVIL.into()),
            description: Some(EVIL.into()),
            input_schema: before.to_string(),
            output_schema: Some(before.to_string().replace('\u{202e}', "\\u202e")),
            meta: Some(json!({EVIL: [EVIL, {"n": 1}]}).to_string()),
            ..ToolDefinition::default()
        };
        let (tools, remarks) = cleaned(vec![tool]);
        let [tool] = tools.as_slice() else { panic!("{tools:?}") };
        assert_eq!((tool.title.as_deref(), tool.description.as_deref()), (Some("abc"), Some("abc")));
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&tool.input_schema), after);
        assert_eq!(read(tool.output_schema.as_deref().unwrap()), after);
        assert_eq!(read(tool.meta.as_deref().unwrap()), json!({"abc": ["abc", {"n": 1}]}));
        assert!(remarks.is_empty());
    }

    #[test]
    fn what_needs_no_cleaning_is_not_written_anew() {
        for text in [r#"{ "type":"object", "maximum": 1.50 }"#, "{", r#"{"title": "\u00"#, "\u{202e}"] {
            let tool = ToolDefinition { input_schema: text.into(), ..ToolDefinition::default() };
            assert_eq!(cleaned(vec![tool]).0[0].input_schema, text);
        }
    }

    #[test]
    fn an_icon_is_an_image_behind_tls_or_in_the_address() {
        let good = [
            "https://a.example/i.png",
            "HTTPS://a.example/ü",
            "data:image/png;base64,AAAA",
            "data:IMAGE/svg+xml,<svg/>",
        ];
        let bad = [
            "http://a.example/i.png",
            "javascript:alert(1)",
            "data:text/html,<script>",
            "https:",
            "https:///etc/passwd",
            "https://?a",
            "https://a.example/ b",
            "https://a.example/\u{1b}[2J",
            "https://a.example/\u{202e}gnp.i",
            "file:///etc/passwd",
            "data:imag",
            "",
            "i.png",
        ];
        let tool = |icons| ToolDefinition { name: "a".into(), icons, ..ToolDefinition::default() };
        let all = bad.iter().chain(&good).map(|src| icon(src)).collect();
        let (tools, remarks) = cleaned(vec![tool(all)]);
        assert_eq!(tools[0].icons.iter().map(|icon| icon.src.as_str()).collect::<Vec<_>>(), good);
        assert_eq!(tools[0].icons[0].sizes, ["48x48"]);
        assert_eq!(
            remarks,
            ["tool \"a\": an icon is not shown: its address must begin with https:// or data:image/, not \
             \"http://a.example/i.png\""]
        );
        for bad in bad {
            assert!(icon_cleaned(icon(bad)).is_err(), "{bad}");
        }
        let (_, remarks) = cleaned(vec![tool(vec![icon(bad[1]); 100]); 30]);
        assert_eq!(remarks.len(), NAMED_TOOLS + 1);
        assert_eq!(remarks[NAMED_TOOLS], "20 more tools have icons that are not shown");
        let page = Icon { mime_type: Some("text/html".into()), ..icon(good[0]) };
        assert_eq!(icon_cleaned(page).unwrap_err(), "its MIME type must be image/…, not \"text/html\"");
    }
}
