//! What `#[tool]` makes of a function.

use crate::bindings::toolbay::plugin::types;
use crate::schema;
use crate::{Context, Error, Icon, IntoOutput, JsonSchema, Output, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A tool. `#[tool]` implements it for an empty type that has the name of the
/// function, so that [`test::call`](crate::test::call) can name the function.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "there is no `#[tool]` above this function",
    note = "each name in `export!` is that of a function with `#[tool]` above it"
)]
pub trait Tool {
    /// The name that clients call.
    const NAME: &'static str;

    /// What clients are told about it.
    fn definition() -> Definition;

    /// Runs it with a JSON object as text.
    fn call(arguments: &str, context: &Context) -> Result<Output>;
}

/// What clients are told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(pub(crate) types::ToolDefinition);

impl Definition {
    /// A tool that takes no arguments and returns nothing structured.
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

    /// Takes the schema of the arguments from their type.
    #[must_use]
    pub fn input<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.0.input_schema = schema::of_input::<T>().as_value().to_string();
        self
    }

    /// Takes the schema of the structured content, if any, from the type that
    /// the function returns.
    #[must_use]
    pub fn output<T: IntoOutput>(mut self) -> Self {
        self.0.output_schema = T::output_schema().map(|schema| schema.as_value().to_string());
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.0.title = Some(title.to_owned());
        self
    }

    /// Adds a picture: a `data:` or `https:` URI, or an [`Icon`] that says
    /// more about it.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.0.icons.push(icon.into().0);
        self
    }

    /// Adds a member to the definition's `_meta`. Its key begins with a domain
    /// of yours, such as `example.com/`.
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

    /// Says whether the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.annotations().read_only = Some(yes);
        self
    }

    /// Says whether the tool may delete or overwrite.
    #[must_use]
    pub fn destructive(mut self, yes: bool) -> Self {
        self.annotations().destructive = Some(yes);
        self
    }

    /// Says whether the same call twice has the effect of one.
    #[must_use]
    pub fn idempotent(mut self, yes: bool) -> Self {
        self.annotations().idempotent = Some(yes);
        self
    }

    /// Says whether the tool deals with things outside a closed set.
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

    /// The schema of the arguments.
    pub fn input_schema(&self) -> Value {
        serde_json::from_str(&self.0.input_schema).unwrap_or_default()
    }

    /// The schema of the structured content.
    pub fn output_schema(&self) -> Option<Value> {
        serde_json::from_str(self.0.output_schema.as_deref()?).ok()
    }
}

/// One tool in the list that `export!` makes.
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

/// Reads the arguments of a call. The host has checked them against the schema,
/// but a type may know better than its schema.
pub fn arguments<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let message = message(error.inner());
        // "." is the object itself: what is missing there is in the message.
        if path == "." {
            Error::invalid_arguments(message)
        } else {
            Error::invalid_arguments(format_args!("`{path}`: {message}"))
        }
    })
}

/// The message without the line and column, which mean nothing to a caller that
/// never saw the text.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

/// What a name in `export!` stands for when it is not a tool's: it has no
/// [`Tool`], and what the compiler says of that is written there.
pub mod missing {
    /// Not a tool.
    #[derive(Debug)]
    pub enum Candidate {}
}

/// Refuses a list with two tools of the same name in it.
///
/// # Panics
///
/// If there are. `export!` calls it at compile time, where that is an error of
/// the compiler's.
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

/// `==`, which does not run at compile time yet.
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
    fn a_mistake_is_named_with_its_path() {
        let error = arguments::<Args>(r#"{"sizes": [1, 256], "text": "a"}"#).unwrap_err();
        assert!(error.is_invalid_arguments());
        assert_eq!(error.message(), "`sizes[1]`: invalid value: integer `256`, expected u8");
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = arguments::<Args>("{}").unwrap_err();
        assert_eq!(error.message(), "missing field `text`");
    }

    #[test]
    fn a_definition_says_what_it_was_told() {
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
    fn names_are_compared_whole() {
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
