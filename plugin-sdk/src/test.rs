//! Runs a tool in a native test as a host would: from JSON to output.
//!
//! A tool is a function, and most tests simply call it. These functions run the whole call,
//! including the conversion of arguments and result.

use crate::complete::{Complete, Completions, Given};
use crate::prompt::{Messages, Prompt};
use crate::readable::{Contents, Readable, ResourceEntry};
use crate::{Context, Definition, Error, Output, Result, Tool};
use serde::Serialize;

/// Calls a tool. The type parameter is the name of its function.
///
/// ```
/// use serde::Deserialize;
/// use toolbay_plugin::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Args { name: String }
///
/// /// Greets.
/// #[tool(read_only)]
/// fn greet(args: Args) -> String {
///     format!("Hello, {}!", args.name)
/// }
///
/// use toolbay_plugin::{serde_json::json, test};
///
/// let output = test::call::<greet>(json!({"name": "Ada"}), &Context::test()).unwrap();
/// assert_eq!(output.text(), "Hello, Ada!");
///
/// let error = test::call::<greet>(json!({}), &Context::test()).unwrap_err();
/// assert_eq!(error.message(), "missing field `name`");
/// ```
pub fn call<T: Tool>(arguments: impl Serialize, context: &Context) -> Result<Output> {
    T::call(&serde_json::to_string(&arguments)?, context)
}

/// Returns the definition of a tool. The type parameter is the name of its function.
///
/// ```
/// use toolbay_plugin::{prelude::*, test};
///
/// /// Greets.
/// #[tool(read_only)]
/// fn greet() -> &'static str {
///     "Hello!"
/// }
///
/// assert_eq!(test::definition::<greet>().description(), "Greets.");
/// ```
pub fn definition<T: Tool>() -> Definition {
    T::definition()
}

/// Fills in a prompt. The type parameter is the name of its function. The arguments are pairs of a
/// name and a value.
///
/// ```
/// use toolbay_plugin::{prelude::*, test};
///
/// /// Greets.
/// #[prompt]
/// fn greeting(
///     /// Whom to greet.
///     name: String,
/// ) -> String {
///     format!("Say hello to {name}.")
/// }
///
/// let messages = test::prompt::<greeting>([("name", "Ada")], &Context::test()).unwrap();
/// assert_eq!(messages.text(), "Say hello to Ada.");
/// ```
pub fn prompt<'a, T: Prompt>(
    arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
    context: &Context,
) -> Result<Messages> {
    let arguments: Vec<_> = arguments
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    T::get(&arguments, context)
}

/// Reads a resource. The type parameter is the name of its function. The result is empty if the
/// resource does not exist.
///
/// ```
/// use toolbay_plugin::{prelude::*, test};
///
/// /// A number in words.
/// #[resource("numbers://{number}")]
/// fn number(number: u8) -> Option<&'static str> {
///     ["zero", "one", "two"].get(usize::from(number)).copied()
/// }
///
/// let contents = test::read::<number>("numbers://2", &Context::test()).unwrap();
/// assert_eq!(contents[0].as_text(), Some("two"));
/// assert!(test::read::<number>("numbers://3", &Context::test()).unwrap().is_empty());
/// ```
pub fn read<T: Readable>(uri: &str, context: &Context) -> Result<Vec<Contents>> {
    let read = ResourceEntry::of::<T>().read(uri, context);
    read.unwrap_or_else(|| {
        Err(Error::msg(format_args!(
            "`{uri}` does not fit `{}`",
            T::URI
        )))
    })
}

/// Completes an argument. The type parameter is the name of the function. `given` contains the
/// arguments that already have a value.
///
/// ```
/// use toolbay_plugin::{prelude::*, test};
///
/// /// Translates a text.
/// #[prompt]
/// fn translate(text: String, language: String) -> String {
///     format!("Translate into {language}: {text}")
/// }
///
/// #[completion(translate, language)]
/// fn languages(typed: &str) -> Completions {
///     Completions::beginning_with(typed, ["French", "Finnish", "German"])
/// }
///
/// let completions = test::complete::<languages>("f", [], &Context::test()).unwrap();
/// assert_eq!(completions.values(), ["French", "Finnish"]);
/// ```
pub fn complete<'a, T: Complete>(
    typed: &str,
    given: impl IntoIterator<Item = (&'a str, &'a str)>,
    context: &Context,
) -> Result<Completions> {
    let given = given
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    T::complete(typed, &Given(given), context)
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/src/approve.md")]
#[doc = include_str!("../../docs/src/plugin-rust.md")]
#[doc = include_str!("../../docs/src/tasks.md")]
#[doc = include_str!("../../docs/src/views.md")]
struct Readme;
