//! Write Toolbay plugins in Rust: a plain function becomes an MCP tool, a prompt or a resource.
//!
//! # A plugin
//!
//! Run `cargo new --lib words`, and add to its `Cargo.toml`:
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
//! Build it, and copy the file into the plugin folder:
//!
//! ```text
//! rustup target add wasm32-wasip2
//! cargo build --release --target wasm32-wasip2
//! cp target/wasm32-wasip2/release/words.wasm …/plugins/
//! ```
//!
//! # A tool
//!
//! [`#[tool]`](macro@tool) derives the tool's definition from the function:
//!
//! | part of the definition | comes from |
//! | --- | --- |
//! | name | the function's name |
//! | description | its doc comment, which is required: the model decides by it |
//! | schema of the arguments | the type of `args`, by [`JsonSchema`](derive@JsonSchema) |
//! | their descriptions | the doc comments of its fields |
//! | schema of the result | the `T` of a [`Json<T>`] that the function returns |
//!
//! The arguments are a struct that derives `Deserialize` and [`JsonSchema`](derive@JsonSchema),
//! passed by value. The [`Context`] is passed by reference. Both are optional. The table at
//! [`IntoOutput`] lists the possible return types, and `?` converts every error into one that the
//! model can read: see [`Error`].
//!
//! The schema follows the attributes of `serde`. The host checks the arguments of each call against
//! it, so the function need not check what the schema can express:
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
//!     /// The order of the results.
//!     #[serde(default)]
//!     order: Order,
//! }
//!
//! // `Serialize`, so that the schema can contain the default.
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
//! # Prompts, resources, and questions to the user
//!
//! [`#[prompt]`](macro@prompt) makes a function a prompt, [`#[resource]`](macro@resource) makes it
//! a resource that clients read, and [`#[completion]`](macro@completion) completes the arguments of
//! both. A tool can ask the user, or the client's model, a question: see [`Context::ask`].
//!
//! # Tests
//!
//! A tool remains an ordinary function: `cargo test` runs it on your machine, without a host.
//! [`Context::test`] replaces the host, and [`test::call`] runs the whole call, from JSON to
//! output.
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
//! Everything that Rust's standard library can do on `wasm32-wasip2`: files, environment variables,
//! clocks, random numbers. The operator decides what is allowed: without a grant there are no
//! files, no network and no environment variables. Each call runs in a new instance, so a `static`
//! does not outlive the call.

mod argument;
mod ask;
#[doc(hidden)]
pub mod bindings;
mod block;
mod complete;
mod content;
mod context;
mod error;
mod export;
#[cfg(feature = "http")]
pub mod http;
mod icon;
mod int_string;
#[cfg(feature = "keyvalue")]
pub mod keyvalue;
mod level;
pub mod log;
mod media;
mod meta;
mod offer;
mod output;
pub mod prelude;
mod prompt;
mod readable;
mod recorder;
mod resource;
mod schema;
pub mod test;
mod tool;
mod uri_template;
mod view;

pub use argument::Argument;
pub use ask::{
    AskError, Elicited, Form, Question, Questions, Root, Roots, Sampled, Sampling, Visit,
};
pub use complete::{Complete, Completions, Given, IntoCompletions};
pub use content::Content;
pub use context::Context;
pub use error::{Error, Result, WithContext};
pub use icon::{Icon, Theme};
pub use int_string::IntString;
pub use media::{Audio, Image};
pub use output::{IntoOutput, Json, Output};
pub use prompt::{IntoMessages, Message, Messages, Prompt, PromptDefinition};
pub use readable::{Contents, IntoContents, Readable, ResourceDefinition};
pub use recorder::Progress;
pub use resource::{Resource, ResourceLink};
pub use schema::Schema;
pub use schemars;
pub use serde_json;
pub use tool::{Definition, TaskSupport, Tool};
pub use view::View;

/// The JSON Schema of a type; `#[derive(JsonSchema)]` implements it.
///
/// The derived code refers to a crate named `schemars`. The [`prelude`] provides it; without the
/// prelude, write `use toolbay_plugin::schemars;` or add `schemars` to your dependencies.
#[doc(inline)]
pub use schemars::JsonSchema;

/// Makes a function a tool.
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
/// /// Deletes a note. This cannot be undone.
/// #[tool(title = "Delete a note", destructive, idempotent, open_world = false)]
/// fn delete_note(args: Args) -> String {
///     format!("Note {} is gone.", args.id)
/// }
/// ```
///
/// Every key is optional:
///
/// | key | meaning |
/// | --- | --- |
/// | `name = "…"` | the name that clients call, if it differs from the function's |
/// | `title = "…"` | a display name |
/// | `icon = "…"` | an icon of the tool: a `data:` or `https:` URI |
/// | `read_only` | the tool changes nothing |
/// | `destructive` | the tool may delete or overwrite data, not only add to it |
/// | `idempotent` | repeating a call with the same arguments has no further effect |
/// | `open_world` | the tool interacts with external entities, such as the web |
/// | `view = "ui://…"` | the [`View`] that clients show with the tool's results: the URI of a resource of the plugin |
/// | `app_only` | the tool is for the plugin's views, and clients with views do not show it to the model |
/// | `define = function` | everything else: a function that takes the [`Definition`] and returns it |
///
/// A flag without a value means true, and `= false` means false. Without the flag, the definition
/// contains no hint, and clients assume the worst. The flags are hints for the client, which
/// decides whether to ask its user first.
///
/// Use `define` for `_meta` and for icons in several sizes or for several backgrounds:
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
/// The function takes the arguments and the context in this order, only one of them, or neither. It
/// cannot be async or generic.
pub use toolbay_plugin_macros::tool;

/// Makes a function a prompt: a text that the user chooses, which becomes the beginning of a
/// conversation.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Reviews a piece of code.
/// #[prompt(title = "Review code")]
/// fn review(
///     /// The code to review.
///     code: String,
///     /// The language that it is written in.
///     language: Option<String>,
/// ) -> String {
///     let language = language.unwrap_or_else(|| "any language".to_owned());
///     format!("Review this code in {language}:\n\n{code}")
/// }
///
/// export!(review);
/// # fn main() {}
/// ```
///
/// Each parameter is an argument of the prompt, with its doc comment as the description. Its type
/// is an [`Argument`]. A parameter of the type `&Context` is the [`Context`]. The table at
/// [`IntoMessages`] lists the possible return types.
///
/// | key | meaning |
/// | --- | --- |
/// | `name = "…"` | the name by which clients get it, if it differs from the function's |
/// | `title = "…"` | a display name |
/// | `icon = "…"` | an icon: a `data:` or `https:` URI |
/// | `define = function` | everything else: a function that takes the [`PromptDefinition`] and returns it |
pub use toolbay_plugin_macros::prompt;

/// Makes a function a resource, or the resources of a template. Clients read it by URI.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// The rules of the game.
/// #[resource("game://rules", mime_type = "text/plain")]
/// fn rules() -> &'static str {
///     "There are none."
/// }
///
/// /// What a player has.
/// #[resource("game://players/{name}/cards")]
/// fn cards(name: String) -> Option<String> {
///     (name == "Ada").then(|| "four aces".to_owned())
/// }
///
/// export!(rules, cards);
/// # fn main() {}
/// ```
///
/// The URI may have variables: `{name}` stands for one or more characters other than `/`, `?` and
/// `#`, and `{+name}` for one or more of any characters. Each variable is a parameter of the same
/// name. Its type is an [`Argument`]. A parameter of the type `&Context` is the [`Context`]. The
/// table at [`IntoContents`] lists the possible return types.
///
/// A URI that begins with `ui://` makes the resource a [`View`]: a page that clients show with the
/// results of a tool.
///
/// | key | meaning |
/// | --- | --- |
/// | `name = "…"` | its name, if it differs from the function's |
/// | `title = "…"` | a display name |
/// | `mime_type = "…"` | the MIME type of its content |
/// | `icon = "…"` | an icon: a `data:` or `https:` URI |
/// | `define = function` | everything else: a function that takes the [`ResourceDefinition`] and returns it |
pub use toolbay_plugin_macros::resource;

/// Makes a function complete an argument of a prompt or a variable of a resource template.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Translates a text.
/// #[prompt]
/// fn translate(text: String, language: String) -> String {
///     format!("Translate into {language}: {text}")
/// }
///
/// #[completion(translate, language)]
/// fn languages(typed: &str) -> Completions {
///     Completions::beginning_with(typed, ["French", "German", "Greek"])
/// }
///
/// export!(translate, languages);
/// # fn main() {}
/// ```
///
/// The first parameter is the text that the user has typed, as `&str`. If the function needs them,
/// it also takes the arguments that already have a value, as [`&Given`](Given), and the
/// [`&Context`](Context). See [`IntoCompletions`] for the possible return types.
pub use toolbay_plugin_macros::completion;

/// Used by the macros; not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use crate::argument::{argument, is_required};
    pub use crate::complete::{CompletionEntry, Target};
    pub use crate::offer::{Entry, Offer, check_names, missing};
    pub use crate::prompt::PromptEntry;
    pub use crate::readable::ResourceEntry;
    pub use crate::tool::{ToolEntry, arguments};
    pub use toolbay_plugin_macros::entries;
}
