//! A tool that serves: its checked definition, its compiled schemas, and the plugin behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::header::{self, ParamHeader};
use crate::definition::{Annotations, Icon, ToolDefinition};
use crate::plugin::Plugin;
use crate::plugin::grant::{Hints, Shown};
use crate::schema::{PatternSize, Schema};

/// How long a tool's name may be (MCP, "Tool Names").
const NAME: usize = 128;

/// What a client must be able to do to call a tool, in the `_meta` of its definition: capabilities as MCP has them.
const CLIENT_CAPABILITIES: &str = "dev.toolbay/client-capabilities";

/// A definition whose name and schemas are valid; shared by all tools made from it.
#[derive(Clone, Debug)]
pub struct CheckedDefinition {
    /// The name within the plugin.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// What the arguments must fit.
    pub input: Arc<Schema>,
    /// The arguments that HTTP headers repeat.
    pub headers: Vec<ParamHeader>,
    /// What a client must be able to do.
    pub needs: Map<String, Value>,
    /// What the structured content must fit.
    pub output: Option<Arc<Schema>>,
    /// What it does to the world.
    pub annotations: Option<Annotations>,
    /// Pictures of it.
    pub icons: Vec<Icon>,
    /// Members for `_meta`.
    pub meta: Map<String, Value>,
}

/// A tool that serves.
#[derive(Debug)]
pub struct Tool {
    /// The name that clients call: the plugin's prefix and the definition's name.
    pub name: String,
    /// What it is.
    pub definition: Arc<CheckedDefinition>,
    /// The plugin that does it.
    pub plugin: Arc<Plugin>,
}

/// Checks what a plugin said; the result is sorted by name.
///
/// # Errors
///
/// What is wrong. One bad tool refuses the plugin, because half a plugin is a surprise.
pub fn check(definitions: Vec<ToolDefinition>) -> Result<Vec<Arc<CheckedDefinition>>, String> {
    let schemas = definitions.iter().flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()]);
    let patterns = PatternSize::of(schemas.flatten().map(String::as_str));
    let mut tools = BTreeMap::new();
    for definition in definitions {
        let checked = CheckedDefinition::new(definition, patterns)?;
        if let Some(twice) = tools.insert(checked.name.clone(), Arc::new(checked)) {
            return Err(format!("offers two tools named {:?}", twice.name));
        }
    }
    Ok(tools.into_values().collect())
}

impl CheckedDefinition {
    fn new(definition: ToolDefinition, patterns: PatternSize) -> Result<Self, String> {
        let name = definition.name;
        if !is_name(&name) {
            return Err(format!("tool {name:?}: a name has 1 to {NAME} of A-Z a-z 0-9 _ - ."));
        }
        let input = Schema::compile_input(&definition.input_schema, patterns)
            .map_err(|error| format!("tool {name:?}: its input schema {}", bad_schema(&error)))?;
        let headers =
            header::headers(input.value()).map_err(|error| format!("tool {name:?}: its input schema: {error}"))?;
        let output = definition
            .output_schema
            .map(|text| Schema::compile_with(&text, patterns))
            .transpose()
            .map_err(|error| format!("tool {name:?}: its output schema {}", bad_schema(&error)))?;
        let meta = match definition.meta.as_deref().map(serde_json::from_str) {
            None => Map::new(),
            Some(Ok(Value::Object(members))) => members,
            Some(_) => return Err(format!("tool {name:?}: its meta is not a JSON object")),
        };
        let needs = match meta.get(CLIENT_CAPABILITIES) {
            None => Map::new(),
            Some(Value::Object(needs)) => needs.clone(),
            Some(_) => return Err(format!("tool {name:?}: its meta's {CLIENT_CAPABILITIES:?} is not an object")),
        };
        Ok(Self {
            name,
            title: definition.title,
            description: definition.description,
            input: Arc::new(input),
            headers,
            needs,
            output: output.map(Arc::new),
            annotations: definition.annotations,
            icons: definition.icons,
            meta,
        })
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }

    /// The same as an operator wants it shown.
    #[must_use]
    pub fn shown_as(&self, shown: &Shown) -> Self {
        let hints = shown.annotations;
        let annotations = if hints == Hints::default() {
            self.annotations
        } else {
            let own = self.annotations.unwrap_or_default();
            Some(Annotations {
                read_only: hints.read_only.or(own.read_only),
                destructive: hints.destructive.or(own.destructive),
                idempotent: hints.idempotent.or(own.idempotent),
                open_world: hints.open_world.or(own.open_world),
            })
        };
        Self {
            title: shown.title.clone().or_else(|| self.title.clone()),
            description: shown.description.clone().or_else(|| self.description.clone()),
            annotations,
            ..self.clone()
        }
    }

    /// Whether a client that lists both sees the same.
    fn looks_like(&self, other: &Self) -> bool {
        self.name == other.name
            && self.title == other.title
            && self.description == other.description
            && self.input.value() == other.input.value()
            && self.output.as_deref().map(Schema::value) == other.output.as_deref().map(Schema::value)
            && self.annotations == other.annotations
            && self.icons == other.icons
            && self.meta == other.meta
    }
}

impl Tool {
    /// A tool named `name` that nothing can call.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn for_test(name: &str) -> Self {
        let definition = ToolDefinition {
            name: name.to_owned(),
            input_schema: r#"{"type":"object"}"#.to_owned(),
            ..ToolDefinition::default()
        };
        let definition =
            CheckedDefinition::new(definition, PatternSize::of([])).unwrap_or_else(|error| unreachable!("{error}"));
        Self {
            name: name.to_owned(),
            definition: Arc::new(definition),
            plugin: Arc::new(Plugin::for_test("test", None, Vec::new())),
        }
    }
}

/// Whether `tools/list` returns the same for both.
pub(super) fn same_listing(a: &BTreeMap<String, Arc<Tool>>, b: &BTreeMap<String, Arc<Tool>>) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|((name_a, a), (name_b, b))| {
            name_a == name_b && (Arc::ptr_eq(&a.definition, &b.definition) || a.definition.looks_like(&b.definition))
        })
}

/// Whether MCP allows `name` as a tool's name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// "must be …" continues a sentence; anything else is quoted after a colon.
fn bad_schema(error: &str) -> String {
    if error.starts_with("must ") || error.starts_with("holds ") || error.starts_with("nests ") {
        error.to_owned()
    } else {
        format!("is not valid: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, input: &str) -> ToolDefinition {
        ToolDefinition { name: name.into(), input_schema: input.into(), ..ToolDefinition::default() }
    }

    #[test]
    fn tools_are_sorted_by_name() {
        let object = r#"{"type":"object"}"#;
        let tools = check(vec![definition("b", object), definition("a", object)]).unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_cannot_serve_is_refused() {
        let object = r#"{"type":"object"}"#;
        let cases = [
            (vec![definition("", object)], "tool \"\": a name has 1 to 128 of A-Z a-z 0-9 _ - ."),
            (
                vec![definition("a\u{1b}[31m", object)],
                "tool \"a\\u{1b}[31m\": a name has 1 to 128 of A-Z a-z 0-9 _ - .",
            ),
            (vec![definition("a", object), definition("a", object)], "offers two tools named \"a\""),
            (
                vec![definition("a", "{}")],
                "tool \"a\": its input schema is not valid: the root must have \"type\": \"object\"",
            ),
            (vec![definition("a", "7")], "tool \"a\": its input schema must be a JSON object"),
        ];
        for (definitions, expected) in cases {
            assert_eq!(check(definitions).unwrap_err(), expected);
        }
    }
}
