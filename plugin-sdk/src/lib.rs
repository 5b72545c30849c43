//! Write Toolbay plugins in Rust: a plain function becomes an MCP tool.
//!
//! # A plugin
//!
//! `cargo new --lib words`, and in its `Cargo.toml`:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! serde = { version = "1", features = ["derive"] }
//! toolbay-plugin = { path = "../toolbay/plugin-sdk" }
//!
//! [profile.release]
//! opt-level = "s"
//! lto = true
//! strip = true
//! panic = "abort"
//! ```
//!
//! `src/lib.rs`:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use toolbay_plugin::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Args {
//!     /// Text to count.
//!     text: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Count {
//!     words: usize,
//!     lines: usize,
//! }
//!
//! /// Counts the words and lines of a text.
//! #[tool(read_only)]
//! fn count_words(args: Args, ctx: &Context) -> Result<Json<Count>> {
//!     info!("{} bytes", args.text.len());
//!     ctx.progress(1.0, 1.0);
//!     Ok(Json(Count {
//!         words: args.text.split_whitespace().count(),
//!         lines: args.text.lines().count(),
//!     }))
//! }
//!
//! export!(count_words);
//! # fn main() {}
//! ```
//!
//! Build it, and drop the file into the folder that the host serves:
//!
//! ```text
//! rustup target add wasm32-wasip2
//! cargo build --release --target wasm32-wasip2
//! cp target/wasm32-wasip2/release/words.wasm …/plugins/
//! ```
//!
//! # A tool
//!
//! [`#[tool]`](macro@tool) takes what clients are told from the function:
//!
//! | of the tool | comes from |
//! | --- | --- |
//! | name | the function's name |
//! | description | its doc comment, which must be there: the model decides by it |
//! | schema of the arguments | the type of `args`, by [`JsonSchema`](derive@JsonSchema) |
//! | their descriptions | the doc comments of its fields |
//! | schema of the result | the `T` of a [`Json<T>`] that the function returns |
//!
//! The arguments are a struct that derives `Deserialize` and
//! [`JsonSchema`](derive@JsonSchema), taken by value; the [`Context`] is lent.
//! Either may be left out. What the function may return is the table at
//! [`IntoOutput`], and `?` turns every error into one that the model can read:
//! see [`Error`].
//!
//! The schema says what `serde` does. The host checks the arguments of each
//! call against it, so whatever the schema can say, the function need not check:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use toolbay_plugin::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     /// What to look for.
//!     #[schemars(length(min = 1, max = 200))]
//!     query: String,
//!     /// How many results to return.
//!     #[serde(default = "ten")]
//!     #[schemars(range(min = 1, max = 100))]
//!     limit: u32,
//!     /// In which order.
//!     #[serde(default)]
//!     order: Order,
//! }
//!
//! // `Serialize`, so that the schema can say what the default is.
//! #[derive(Default, Serialize, Deserialize, JsonSchema)]
//! #[serde(rename_all = "lowercase")]
//! enum Order {
//!     #[default]
//!     Newest,
//!     Oldest,
//! }
//!
//! fn ten() -> u32 {
//!     10
//! }
//!
//! /// Searches the archive.
//! #[tool(read_only)]
//! fn search(args: Args) -> Result<String> {
//!     # let _ = args.order;
//!     Ok(format!("{} results for {}", args.limit, args.query))
//! }
//! ```
//!
//! # Tests
//!
//! A tool stays the function that you wrote: `cargo test` runs it on your own
//! machine, without a host. [`Context::test`] stands in for one, and
//! [`test::call`] goes the whole way from JSON to output.
//!
//! ```
//! # use toolbay_plugin::prelude::*;
//! /// Greets in the operator's language.
//! #[tool(read_only)]
//! fn greet(ctx: &Context) -> String {
//!     match ctx.config("language").as_deref() {
//!         Some("de") => "Guten Tag!".to_owned(),
//!         _ => "Hello!".to_owned(),
//!     }
//! }
//!
//! # /*
//! #[test]
//! fn greets_in_german() {
//! # */
//!     let ctx = Context::test().with_config("language", "de");
//!     assert_eq!(greet(&ctx), "Guten Tag!");
//! # /*
//! }
//! # */
//! ```
//!
//! # What a plugin can do
//!
//! Everything that Rust's standard library does on `wasm32-wasip2`: files, the
//! environment, clocks, randomness. What of it works is the operator's choice:
//! without a grant there are no files, no network and no environment. Each call
//! runs in a new instance, so a `static` does not outlive it.

#[doc(hidden)]
pub mod bindings;
mod block;
mod content;
mod context;
mod error;
mod export;
mod icon;
mod level;
pub mod log;
mod media;
mod output;
pub mod prelude;
mod recorder;
mod resource;
mod schema;
pub mod test;
mod tool;

pub use content::Content;
pub use context::Context;
pub use error::{Error, Result};
pub use icon::{Icon, Theme};
pub use media::{Audio, Image};
pub use output::{IntoOutput, Json, Output};
pub use recorder::Progress;
pub use resource::{Resource, ResourceLink};
pub use schema::Schema;
pub use schemars;
pub use serde_json;
pub use tool::{Definition, Tool};

/// The JSON Schema of a type; `#[derive(JsonSchema)]` implements it.
///
/// What the derive writes looks for a crate called `schemars`. It finds the one
/// of the [`prelude`]; without the prelude, `use toolbay_plugin::schemars;` or
/// add `schemars` to your dependencies.
#[doc(inline)]
pub use schemars::JsonSchema;

/// Makes a tool of a function.
///
/// ```
/// use serde::Deserialize;
/// use toolbay_plugin::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// The note to delete.
///     id: u64,
/// }
///
/// /// Deletes a note. There is no way back.
/// #[tool(title = "Delete a note", destructive, idempotent, open_world = false)]
/// fn delete_note(args: Args) -> String {
///     format!("Note {} is gone.", args.id)
/// }
/// ```
///
/// Every key is optional:
///
/// | key | says |
/// | --- | --- |
/// | `name = "…"` | the name that clients call, if not the function's |
/// | `title = "…"` | a name for people |
/// | `icon = "…"` | a picture of the tool: a `data:` or `https:` URI |
/// | `read_only` | the tool changes nothing |
/// | `destructive` | the tool may delete or overwrite, rather than only add |
/// | `idempotent` | the same call twice has the effect of one |
/// | `open_world` | the tool deals with things outside a closed set, such as the web |
/// | `define = function` | whatever else a [`Definition`] can say, by a function that takes it and returns it |
///
/// A flag alone is true; `= false` says the contrary; without it, nothing is
/// said, and clients assume the worst. They are hints for the client, which
/// decides whether to ask its user first.
///
/// Icons for several sizes and backgrounds, and `_meta`, are for `define`:
///
/// ```
/// use toolbay_plugin::prelude::*;
/// use toolbay_plugin::{Definition, Icon, Theme};
///
/// /// Says how much of the moon is lit.
/// #[tool(read_only, define = with_pictures)]
/// fn moon() -> &'static str {
///     "all of it"
/// }
///
/// fn with_pictures(definition: Definition) -> Definition {
///     definition
///         .icon(Icon::new("https://example.com/light.png").size("48x48").theme(Theme::Light))
///         .icon(Icon::new("https://example.com/dark.png").size("48x48").theme(Theme::Dark))
///         .meta("example.com/category", "sky")
/// }
/// # export!(moon);
/// # fn main() {}
/// ```
///
/// The function takes the arguments and the context, in this order, or only one
/// of them, or neither. It is not async and not generic.
pub use toolbay_plugin_macros::tool;

/// What the macros need; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{Entry, arguments, check_names, missing};
    pub use toolbay_plugin_macros::entries;
}
