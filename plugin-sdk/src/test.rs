//! Running a tool in a native test as a host would: from JSON to output.
//!
//! A tool is a function, and most tests just call it. These go the whole way,
//! through the reading of the arguments and the writing of the result.

use crate::{Context, Definition, Output, Result, Tool};
use serde::Serialize;

/// Calls a tool, named by its function.
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

/// What clients are told about a tool, named by its function.
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

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/src/plugin-rust.md")]
struct Readme;
