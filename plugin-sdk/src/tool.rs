//! The code that `#[tool]` generates uses these types.

use crate::bindings::toolbay::plugin::types;
use crate::schema;
use crate::{Context, Error, Icon, IntoOutput, JsonSchema, Output, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A tool. `#[tool]` implements it for an empty type with the name of the function, so that
/// [`test::call`](crate::test::call) can name the function.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "there is no `#[tool]` above this function",
    note = "each name in `export!` is that of a function with `#[tool]` above it"
)]
pub trait Tool {
    /// The name that clients call.
    const NAME: &'static str;

    /// The tool's definition.
    fn definition() -> Definition;

    /// Calls the tool with a JSON object as text.
    fn call(arguments: &str, context: &Context) -> Result<Output>;
}

/// The definition of a tool: what clients learn about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(pub(crate) types::ToolDefinition);

impl Definition {
    /// A tool without arguments and without structured content.
    pub fn new(name: &str, description: &str) -> Self {
        Self(types::ToolDefinition {
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            input_schema: schema::of_nothing().as_value().to_string(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        })
    }

    /// Sets the input schema to that of the arguments' type.
    #[must_use]
    pub fn input<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.0.input_schema = schema::of_input::<T>().as_value().to_string();
        self
    }

    /// Sets the output schema to that of the structured content, if the return type has any.
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

    /// Adds a member to the definition's `_meta`. Begin its key with a domain of yours, such as `example.com/`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let mut members = self.members();
        members.insert(key.into(), value.into());
        self.0.meta = Some(Value::Object(members).to_string());
        self
    }

    /// The members of `_meta`.
    fn members(&self) -> Map<String, Value> {
        self.0.meta.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
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

    fn annotations(&mut self) -> &mut types::Annotations {
        self.0.annotations.get_or_insert(types::Annotations {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        })
    }

    /// The name that clients call.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the tool does and when to use it.
    pub fn description(&self) -> &str {
        self.0.description.as_deref().unwrap_or_default()
    }

    /// The input schema.
    pub fn input_schema(&self) -> Value {
        serde_json::from_str(&self.0.input_schema).unwrap_or_default()
    }

    /// The output schema.
    pub fn output_schema(&self) -> Option<Value> {
        serde_json::from_str(self.0.output_schema.as_deref()?).ok()
    }
}

/// One tool in the list that `export!` creates.
#[derive(Debug)]
pub struct Entry {
    pub(crate) name: &'static str,
    pub(crate) definition: fn() -> Definition,
    pub(crate) call: fn(&str, &Context) -> Result<Output>,
}

impl Entry {
    /// The entry of one tool.
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, definition: T::definition, call: T::call }
    }
}

/// Deserializes the arguments of a call. The host has checked them against the schema, but a type may be stricter than
/// its schema.
pub fn arguments<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let message = message(error.inner());
        // "." is the object itself; the message names the missing member.
        if path == "." {
            Error::invalid_arguments(message)
        } else {
            Error::invalid_arguments(format_args!("`{path}`: {message}"))
        }
    })
}

/// The message without line and column, which mean nothing to a caller that never saw the text.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

/// Stands for a name in `export!` that is not a tool. It does not implement [`Tool`], and the compiler then prints the
/// message that is written there.
pub mod missing {
    /// Not a tool.
    #[derive(Debug)]
    pub enum Candidate {}
}

/// Refuses a list in which two tools have the same name.
///
/// # Panics
///
/// If there are two. `export!` calls it at compile time, where a panic is a compiler error.
pub const fn check_names(tools: &[Entry]) {
    let mut rest = tools;
    while let [tool, others @ ..] = rest {
        let mut after = others;
        while let [other, others @ ..] = after {
            assert!(
                !same(tool.name.as_bytes(), other.name.as_bytes()),
                "two tools in `export!` have the same name: give one of them `#[tool(name = \"…\")]`"
            );
            after = others;
        }
        rest = others;
    }
}

/// `==`, which cannot be used at compile time yet.
const fn same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([x, xs @ ..], [y, ys @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (xs, ys);
    }
    a.is_empty() && b.is_empty()
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
        assert_eq!(error.message(), "`sizes[1]`: invalid value: integer `256`, expected u8");
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
        assert_eq!((icon.mime_type.as_deref(), icon.sizes.join(" ")), (Some("image/png"), "48x48 any".to_owned()));
        assert_eq!(icon.theme, Some(types::Theme::Dark));
        assert_eq!(definition.0.meta.as_deref(), Some(r#"{"example.com/a":1,"example.com/b":["b"]}"#));
        let annotations = definition.0.annotations.unwrap();
        assert_eq!(annotations.read_only, Some(true));
        assert_eq!(annotations.open_world, Some(false));
        assert_eq!(annotations.destructive, None);
    }

    #[test]
    fn a_tool_without_arguments_takes_none() {
        let definition = Definition::new("a", "Does a.");
        assert_eq!(definition.input_schema(), json!({"type": "object", "additionalProperties": false}));
        assert_eq!(definition.0.annotations, None);
    }

    fn named(names: [&'static str; 3]) -> [Entry; 3] {
        names.map(|name| Entry { name, definition: || Definition::new("", ""), call: |_, _| Ok(Output::new()) })
    }

    #[test]
    fn names_are_compared_as_a_whole() {
        check_names(&named(["a", "ab", "b"]));
        check_names(&named(["", "ab", "b"]));
        assert!(same(b"ab", b"ab"));
        assert!(!same(b"ab", b"a"));
    }

    #[test]
    #[should_panic(expected = "the same name")]
    fn a_name_given_twice_is_refused() {
        check_names(&named(["a", "b", "a"]));
    }
}
