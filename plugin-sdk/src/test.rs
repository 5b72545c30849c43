//! Runs a tool in a native test as a host would: from JSON to output.
//!
//! A tool is a function, and most tests simply call it. These functions run the whole call, including the conversion of
//! arguments and result.

use crate::{Context, Definition, Output, Result, Tool};
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

/// The definition of a tool. The type parameter is the name of its function.
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
