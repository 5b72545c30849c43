//! Validated definitions of tools: valid names and compiled schemas, with the operator's changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use toolbay_model::{
    EffectHints, JsonText, MAX_MCP_TOOL_NAME_BYTES, TaskSupport, Tool, ToolDefinition, is_tool_name,
};
use toolbay_schema::{JsonSchema, PatternBudget, client_schema};

use crate::definition::definition_meta::{check_icons, encode_meta, parse_meta_members};
use crate::definition::fingerprint::DefinitionFingerprint;
use crate::definition::view_link::ViewLink;
use crate::rules::grant::{AnnotationOverride, ToolOverride};
use crate::rules::input_schema::InputSchema;
use crate::rules::param_headers;

/// Key in a tool's `_meta` that specifies whether the tool can be called as a task, in MCP's terms.
const TASK_SUPPORT_KEY: &str = "dev.toolbay/task-support";

/// Definition of a tool whose name and schemas are valid. All offers of the tool share it.
#[derive(Clone, Debug)]
pub struct ValidDefinition {
    /// The tool as clients receive it, but with its name within the plugin.
    pub tool: Arc<Tool>,
    /// The fingerprint of the definition as clients receive it. Definitions that clients receive
    /// differently have different fingerprints.
    pub(crate) fingerprint: DefinitionFingerprint,
    /// The schema that the arguments must match.
    pub input: Arc<JsonSchema>,
    /// The schema that the structured content must match.
    pub output: Option<Arc<JsonSchema>>,
    /// The capabilities that a client must declare to call the tool.
    pub required_capabilities: Map<String, Value>,
    /// The link to the view that shows the tool's results.
    pub(crate) view: ViewLink,
}

/// Validates the tools of a plugin. Returns them sorted by name. If `is_validated` is set, they
/// were validated before, and their schemas are compiled on first use.
///
/// # Errors
///
/// Returns a description of the first mistake. If one tool is invalid, the whole plugin is refused,
/// because a partial plugin would be surprising.
pub(crate) fn validate_tools(
    definitions: Vec<ToolDefinition>,
    is_validated: bool,
) -> Result<Vec<Arc<ValidDefinition>>, String> {
    let schemas = definitions
        .iter()
        .flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()]);
    let patterns = PatternBudget::for_schemas(schemas.flatten().map(String::as_str));
    let mut tools = BTreeMap::new();
    for definition in definitions {
        let checked = ValidDefinition::new(definition, &patterns, is_validated)?;
        if let Some(duplicate) = tools.insert(checked.tool.name.clone(), Arc::new(checked)) {
            return Err(format!(
                "two of its tools are named {:?}",
                duplicate.tool.name
            ));
        }
    }
    Ok(tools.into_values().collect())
}

/// Removes the tools whose definitions are invalid. Returns their names, each with the reason.
pub(crate) fn take_invalid(definitions: &mut Vec<ToolDefinition>) -> Vec<(String, String)> {
    let schemas = definitions
        .iter()
        .flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()]);
    let patterns = PatternBudget::for_schemas(schemas.flatten().map(String::as_str));
    let mut invalid = Vec::new();
    definitions.retain(|definition| {
        match ValidDefinition::new(definition.clone(), &patterns, false) {
            Ok(_) => true,
            Err(why) => {
                invalid.push((definition.name.clone(), why));
                false
            }
        }
    });
    invalid
}

impl ValidDefinition {
    fn new(
        definition: ToolDefinition,
        patterns: &PatternBudget,
        is_validated: bool,
    ) -> Result<Self, String> {
        let name = definition.name;
        if !is_tool_name(&name) {
            return Err(format!(
                "tool {name:?}: a name must have 1 to {MAX_MCP_TOOL_NAME_BYTES} characters of A-Z a-z 0-9 _ - ."
            ));
        }
        let compile_input = if is_validated {
            JsonSchema::load_validated_input
        } else {
            JsonSchema::compile_input
        };
        let input = compile_input(&definition.input_schema, patterns)
            .map_err(|error| format!("tool {name:?}: its input schema {}", schema_error(&error)))?;
        let headers = param_headers::declared_headers(input.value())
            .map_err(|error| format!("tool {name:?}: its input schema: {error}"))?;
        let output = definition
            .output_schema
            .map(|text| if is_validated { JsonSchema::load_validated } else { JsonSchema::compile_with }(&text, patterns))
            .transpose()
            .map_err(|error| format!("tool {name:?}: its output schema {}", schema_error(&error)))?;
        let (mut meta, required_capabilities) = match &definition.meta {
            Some(text) => {
                parse_meta_members(text).map_err(|why| format!("tool {name:?}: {why}"))?
            }
            None => (Map::new(), Map::new()),
        };
        let task_support =
            parse_task_support(&meta).map_err(|why| format!("tool {name:?}: {why}"))?;
        let view = ViewLink::take_from(&mut meta);
        view.add_to(&mut meta);
        check_icons(&definition.icons).map_err(|why| format!("tool {name:?}: {why}"))?;
        let tool = Tool {
            name,
            title: definition.title,
            description: definition.description,
            input_schema: JsonText::new(&client_schema(input.value())),
            output_schema: output
                .as_ref()
                .map(|schema| JsonText::new(&client_schema(schema.value()))),
            annotations: definition.annotations,
            icons: definition.icons.into(),
            meta: encode_meta(meta),
            headers,
            task_support,
        };
        let fingerprint = DefinitionFingerprint::of_tool(&tool);
        let tool = Arc::new(tool);
        Ok(Self {
            tool,
            fingerprint,
            input: Arc::new(input),
            output: output.map(Arc::new),
            required_capabilities,
            view,
        })
    }

    /// Returns the definition under another name.
    #[must_use]
    pub fn with_name(&self, name: String) -> Self {
        self.with_tool(Tool {
            name,
            ..Tool::clone(&self.tool)
        })
    }

    /// Returns the URI of the view that shows the tool's results.
    pub fn view(&self) -> Option<&str> {
        self.view.uri.as_deref()
    }

    /// Returns the definition without a view.
    pub(crate) fn without_view(&self) -> Self {
        let view = self.view.without_uri();
        let meta = view.replace_in(self.tool.meta.as_ref());
        Self {
            view,
            ..self.with_tool(Tool {
                meta,
                ..Tool::clone(&self.tool)
            })
        }
    }

    /// Returns the definition with the operator's changes.
    #[must_use]
    pub fn with_override(&self, overrides: &ToolOverride) -> Self {
        let tool = &self.tool;
        let hints = overrides.annotations;
        let annotations = if hints == AnnotationOverride::default() {
            tool.annotations
        } else {
            let plugin_hints = tool.annotations.unwrap_or_default();
            Some(EffectHints {
                read_only: hints.read_only.or(plugin_hints.read_only),
                destructive: hints.destructive.or(plugin_hints.destructive),
                idempotent: hints.idempotent.or(plugin_hints.idempotent),
                open_world: hints.open_world.or(plugin_hints.open_world),
            })
        };
        let input = overrides
            .input_schema
            .as_ref()
            .map_or(&self.input, InputSchema::schema);
        let (input_schema, headers) = match &overrides.input_schema {
            // The schema was checked when the grant was parsed, so this cannot fail.
            Some(_) => (
                JsonText::new(&client_schema(input.value())),
                param_headers::declared_headers(input.value()).unwrap_or_default(),
            ),
            None => (tool.input_schema.clone(), tool.headers.clone()),
        };
        let tool = Tool {
            input_schema,
            headers,
            title: overrides.title.clone().or_else(|| tool.title.clone()),
            description: overrides
                .description
                .clone()
                .or_else(|| tool.description.clone()),
            annotations,
            task_support: overrides.task_support.unwrap_or(tool.task_support),
            ..Tool::clone(tool)
        };
        Self {
            input: Arc::clone(input),
            ..self.with_tool(tool)
        }
    }

    fn with_tool(&self, tool: Tool) -> Self {
        Self {
            fingerprint: DefinitionFingerprint::of_tool(&tool),
            tool: Arc::new(tool),
            ..self.clone()
        }
    }
}

/// Returns whether the tool can be called as a task, as the definition's `_meta` specifies.
fn parse_task_support(meta: &Map<String, Value>) -> Result<TaskSupport, String> {
    let Some(value) = meta.get(TASK_SUPPORT_KEY) else {
        return Ok(TaskSupport::Forbidden);
    };
    TaskSupport::deserialize(value).map_err(|_| {
        format!(
            "{TASK_SUPPORT_KEY:?} in its _meta must be \"forbidden\", \"optional\" or \"required\""
        )
    })
}

/// Formats the error of a schema. An error that begins with a verb continues the sentence; any
/// other error follows a colon.
fn schema_error(error: &str) -> String {
    if ["must ", "contains ", "is nested ", "refers to ", "has the "]
        .iter()
        .any(|verb| error.starts_with(verb))
    {
        error.to_owned()
    } else {
        format!("is invalid: {error}")
    }
}

#[cfg(test)]
mod tests {
    use toolbay_model::Icon;

    use super::*;

    fn definition(name: &str, input: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            input_schema: input.into(),
            ..ToolDefinition::default()
        }
    }

    fn with_meta(meta: &str) -> ToolDefinition {
        ToolDefinition {
            meta: Some(meta.into()),
            ..definition("a", r#"{"type":"object"}"#)
        }
    }

    fn with_icons(icons: Vec<Icon>) -> ToolDefinition {
        ToolDefinition {
            icons,
            ..definition("a", r#"{"type":"object"}"#)
        }
    }

    fn icon(sizes: usize) -> Icon {
        Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec!["any".into(); sizes],
            theme: None,
        }
    }

    #[test]
    fn meta_is_kept_as_one_line() {
        let tool = |meta: &str| {
            validate_tools(vec![with_meta(meta)], false)
                .unwrap()
                .remove(0)
        };
        let kept =
            tool("{\n  \"dev.toolbay/client-capabilities\": {\"sampling\": {}},\n \"a\": [1]}");
        assert_eq!(kept.tool.meta.as_ref().unwrap().get(), r#"{"a":[1]}"#);
        assert!(kept.required_capabilities.contains_key("sampling"));
        assert_eq!(tool(" { } ").tool.meta, None);
    }

    #[test]
    fn a_schema_of_the_operator_is_listed_like_one_of_a_plugin() {
        let schema =
            r#"{"type":"object","properties":{"any":true,"none":false,"one":{"const":"x"}}}"#;
        let own = validate_tools(vec![definition("a", schema)], false)
            .unwrap()
            .remove(0);
        let input_schema = InputSchema::deserialize(serde_json::Value::from(schema)).unwrap();
        let plain = validate_tools(vec![definition("a", r#"{"type":"object"}"#)], false)
            .unwrap()
            .remove(0);
        let shown = plain.with_override(&ToolOverride {
            input_schema: Some(input_schema),
            ..ToolOverride::default()
        });
        assert_eq!(shown.tool.input_schema.get(), own.tool.input_schema.get());
        assert_eq!(
            shown.tool.input_schema.get(),
            r#"{"type":"object","properties":{"any":{},"none":{"not":{}},"one":{"const":"x","type":"string"}}}"#
        );
    }

    #[test]
    fn tools_are_sorted_by_name() {
        let object = r#"{"type":"object"}"#;
        let tools = validate_tools(
            vec![definition("b", object), definition("a", object)],
            false,
        )
        .unwrap();
        assert_eq!(
            tools
                .iter()
                .map(|definition| definition.tool.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn invalid_definitions_are_refused() {
        let object = r#"{"type":"object"}"#;
        let cases = [
            (
                vec![definition("", object)],
                "tool \"\": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .",
            ),
            (
                vec![definition("a\u{1b}[31m", object)],
                "tool \"a\\u{1b}[31m\": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .",
            ),
            (
                vec![definition("a", object), definition("a", object)],
                "two of its tools are named \"a\"",
            ),
            (
                vec![definition("a", "{}")],
                "tool \"a\": its input schema is invalid: its root must have \"type\": \"object\"",
            ),
            (
                vec![definition("a", "7")],
                "tool \"a\": its input schema must be a JSON object",
            ),
            (
                vec![with_meta("[1]")],
                "tool \"a\": its _meta must be a JSON object",
            ),
            (
                vec![with_meta(&format!(r#"{{"x":[{}0]}}"#, "0,".repeat(9_998)))],
                "tool \"a\": its _meta has 10,001 values, but at most 10,000 are allowed",
            ),
            (
                vec![with_icons(vec![icon(0); 65])],
                "tool \"a\": the number of its icons is 65, but at most 64 are allowed",
            ),
            (
                vec![with_icons(vec![icon(64), icon(1_000)])],
                "tool \"a\": the number of sizes of one of its icons is 1,000, but at most 64 are allowed",
            ),
        ];
        for (definitions, expected) in cases {
            assert_eq!(validate_tools(definitions, false).unwrap_err(), expected);
        }
    }
}
