//! Tools and their definitions. The code that `#[tool]` generates uses these types.

use crate::bindings::toolbay::plugin::types;
use crate::schema;
use crate::{Context, Error, Icon, IntoOutput, JsonSchema, Output, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool. `#[tool]` implements it for an empty type with the name of the function, so that
/// [`test::call`](crate::test::call) can name the function.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "there is no `#[tool]` above this function"
)]
pub trait Tool {
    /// The name that clients call.
    const NAME: &'static str;

    /// Returns the definition of the tool.
    fn definition() -> Definition;

    /// Calls the tool with a JSON object as text.
    fn call(arguments: &str, context: &Context) -> Result<Output>;
}

/// The member of `_meta` that states whether a tool can be called as a task.
const TASK_SUPPORT_KEY: &str = "dev.toolbay/task-support";

/// The support of a tool for calls as tasks. A tool without a value cannot be called as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSupport {
    /// Clients may call the tool as a task.
    Optional,
    /// Clients must call the tool as a task. Clients without support for tasks cannot call it.
    Required,
}

/// The definition of a tool, which clients list.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(pub(crate) types::ToolDefinition);

impl Definition {
    /// Creates the definition of a tool without arguments and without structured content.
    pub fn new(name: &str, description: &str) -> Self {
        Self(types::ToolDefinition {
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            input_schema: schema::of_no_arguments().as_value().to_string(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        })
    }

    /// Sets the input schema to the schema of the arguments' type.
    #[must_use]
    pub fn input<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.0.input_schema = schema::of_input::<T>().as_value().to_string();
        self
    }

    /// Sets the output schema to the schema of the structured content, if the return type has any.
    #[must_use]
    pub fn output<T: IntoOutput>(mut self) -> Self {
        self.0.output_schema = T::output_schema().map(|schema| schema.as_value().to_string());
        self
    }

    /// Sets a display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.0.title = Some(title.to_owned());
        self
    }

    /// Adds an icon: a `data:` or `https:` URI, or an [`Icon`] with more details.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.0.icons.push(icon.into().0);
        self
    }

    /// Adds a member to the definition's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        crate::meta::insert_member(&mut self.0.meta, key.into(), value.into());
        self
    }

    /// Sets the view that clients show with the tool's results: the URI of one of the plugin's
    /// resources, which begins with `ui://`. Clients without support for views show only the
    /// content of the result.
    #[must_use]
    pub fn view(mut self, uri: &str) -> Self {
        crate::meta::insert_nested_member(&mut self.0.meta, "ui", "resourceUri", uri.into());
        self
    }

    /// Reserves the tool for the plugin's views: clients with support for views do not show it to
    /// the model. This is not a security boundary: a client can still call the tool.
    #[must_use]
    pub fn app_only(mut self) -> Self {
        crate::meta::insert_nested_member(&mut self.0.meta, "ui", "visibility", vec!["app"].into());
        self
    }

    /// Sets whether the tool leaves its environment unchanged.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.annotations().read_only = Some(yes);
        self
    }

    /// Sets whether the tool may delete or overwrite data.
    #[must_use]
    pub fn destructive(mut self, yes: bool) -> Self {
        self.annotations().destructive = Some(yes);
        self
    }

    /// Sets whether repeating a call with the same arguments has no further effect.
    #[must_use]
    pub fn idempotent(mut self, yes: bool) -> Self {
        self.annotations().idempotent = Some(yes);
        self
    }

    /// Sets whether the tool interacts with external entities.
    #[must_use]
    pub fn open_world(mut self, yes: bool) -> Self {
        self.annotations().open_world = Some(yes);
        self
    }

    /// Sets whether the tool can be called as a task: a call that continues after its request has
    /// ended.
    #[must_use]
    pub fn task_support(self, support: TaskSupport) -> Self {
        let word = match support {
            TaskSupport::Optional => "optional",
            TaskSupport::Required => "required",
        };
        self.meta(TASK_SUPPORT_KEY, word)
    }

    fn annotations(&mut self) -> &mut types::Annotations {
        self.0.annotations.get_or_insert(types::Annotations {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        })
    }

    /// Returns the name that clients call.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the description: what the tool does and when to use it.
    pub fn description(&self) -> &str {
        self.0.description.as_deref().unwrap_or_default()
    }

    /// Returns the input schema.
    pub fn input_schema(&self) -> Value {
        serde_json::from_str(&self.0.input_schema).unwrap_or_default()
    }

    /// Returns the output schema.
    pub fn output_schema(&self) -> Option<Value> {
        serde_json::from_str(self.0.output_schema.as_deref()?).ok()
    }
}

/// The entry of a tool in `export!`.
#[derive(Debug)]
pub struct ToolEntry {
    pub(crate) name: &'static str,
    pub(crate) definition: fn() -> Definition,
    pub(crate) call: fn(&str, &Context) -> Result<Output>,
}

impl ToolEntry {
    /// Creates the entry of one tool.
    pub const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            definition: T::definition,
            call: T::call,
        }
    }
}

/// Deserializes the arguments of a call. The host has checked them against the schema, but a type
/// may be stricter than its schema.
pub fn arguments<T: DeserializeOwned>(text: &str) -> Result<T> {
    // Nearly all arguments are valid. Tracking the path of a mistake costs an allocation for each
    // member, so the path is determined only if deserialization fails.
    serde_json::from_str(text).or_else(|_| parse_with_error_path(text))
}

/// Deserializes the arguments like [`arguments`], but slower, and reports the path of a mistake.
#[cold]
#[inline(never)]
fn parse_with_error_path<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let message = message_without_position(error.inner());
        // "." is the object itself; the message names the missing member.
        if path == "." {
            Error::invalid_arguments(message)
        } else {
            Error::invalid_arguments(format_args!("`{path}`: {message}"))
        }
    })
}

/// Returns the message without line and column, which are meaningless to a caller that does not
/// have the text.
fn message_without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Theme;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Args {
        #[serde(default)]
        sizes: Vec<u8>,
        text: String,
    }

    #[test]
    fn arguments_are_read() {
        let args: Args = arguments(r#"{"sizes": [1], "text": "a"}"#).unwrap();
        assert_eq!((args.sizes, args.text), (vec![1], "a".to_owned()));
    }

    #[test]
    fn a_mistake_is_reported_with_its_path() {
        let error = arguments::<Args>(r#"{"sizes": [1, 256], "text": "a"}"#).unwrap_err();
        assert!(error.is_invalid_arguments());
        assert_eq!(
            error.message(),
            "`sizes[1]`: invalid value: integer `256`, expected u8"
        );
    }

    #[test]
    fn a_missing_field_is_reported() {
        let error = arguments::<Args>("{}").unwrap_err();
        assert_eq!(error.message(), "missing field `text`");
    }

    #[test]
    fn a_definition_has_the_values_that_were_set() {
        let definition = Definition::new("a", "Does a.")
            .input::<Args>()
            .output::<crate::Json<()>>()
            .title("A")
            .icon("data:,")
            .icon(
                Icon::new("https://example.com/a.png")
                    .mime_type("image/png")
                    .size("48x48")
                    .size("any")
                    .theme(Theme::Dark),
            )
            .meta("example.com/a", 1)
            .meta("example.com/b", json!(["b"]))
            .read_only(true)
            .open_world(false);
        assert_eq!(definition.name(), "a");
        assert_eq!(definition.description(), "Does a.");
        assert_eq!(definition.input_schema()["required"], json!(["text"]));
        assert_eq!(definition.output_schema(), Some(json!({"type": "null"})));
        assert_eq!(definition.0.icons[0].src, "data:,");
        let icon = &definition.0.icons[1];
        assert_eq!(
            (icon.mime_type.as_deref(), icon.sizes.join(" ")),
            (Some("image/png"), "48x48 any".to_owned())
        );
        assert_eq!(icon.theme, Some(types::Theme::Dark));
        assert_eq!(
            definition.0.meta.as_deref(),
            Some(r#"{"example.com/a":1,"example.com/b":["b"]}"#)
        );
        let annotations = definition.0.annotations.unwrap();
        assert_eq!(annotations.read_only, Some(true));
        assert_eq!(annotations.open_world, Some(false));
        assert_eq!(annotations.destructive, None);
    }

    #[test]
    fn a_tool_without_arguments_takes_none() {
        let definition = Definition::new("a", "Does a.");
        assert_eq!(
            definition.input_schema(),
            json!({"type": "object", "additionalProperties": false})
        );
        assert_eq!(definition.0.annotations, None);
    }
}
