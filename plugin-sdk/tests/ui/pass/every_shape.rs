#![deny(warnings, missing_docs, unsafe_code, unreachable_pub)]

//! Every parameter list and every kind of result.

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Args {
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Length {
    bytes: usize,
}

/// Takes nothing, returns nothing.
#[tool]
fn nothing() {}

/// Takes arguments.
#[tool(
    name = "with.arguments",
    title = "With arguments",
    icon = "data:,",
    read_only
)]
fn with_arguments(args: Args) -> String {
    args.text
}

/// Takes the context.
#[tool(open_world = false, idempotent, destructive = false)]
fn with_context(ctx: &Context) -> Option<String> {
    ctx.config("key")
}

/// Takes both.
#[tool]
fn with_both(Args { text }: Args, _: &toolbay_plugin::Context) -> Result<Json<Length>> {
    ensure!(!text.is_empty(), "empty");
    Ok(Json(Length { bytes: text.len() }))
}

/// Returns both.
#[tool(define = with_more)]
fn pair(args: Args) -> (Json<Length>, Image) {
    let bytes = args.text.len();
    (Json(Length { bytes }), Image::png(args.text))
}

fn with_more(definition: toolbay_plugin::Definition) -> toolbay_plugin::Definition {
    definition
        .icon(toolbay_plugin::Icon::new("data:,").size("any"))
        .meta("example.com/a", true)
}

/// Returns another error.
#[tool]
fn foreign_error(args: Args) -> std::result::Result<Vec<Content>, std::num::ParseIntError> {
    args.text.parse::<u8>().map(|_| Vec::new())
}

#[doc = concat!("Has a description that ", "a macro makes.")]
#[tool]
fn r#type() -> &'static str {
    "a keyword"
}

/// Is not there.
#[cfg(any())]
#[tool]
fn absent() -> NoSuchType {}

mod module {
    use toolbay_plugin::prelude::*;

    /// Is in a module.
    #[tool]
    pub(crate) fn inner() -> Output {
        Output::new().with(Audio::wav([]))
    }
}

/// Is reached by a glob.
mod glob {
    use toolbay_plugin::prelude::*;

    /// Is there too.
    #[tool]
    pub(crate) fn outer() {}
}
use glob::*;

export!(
    nothing,
    outer,
    with_arguments,
    with_context,
    with_both,
    pair,
    foreign_error,
    r#type,
    module::inner,
);

fn main() {
    use toolbay_plugin::{Tool, test};

    assert_eq!(<with_arguments as Tool>::NAME, "with.arguments");
    assert_eq!(<r#type as Tool>::NAME, "type");
    let definition = test::definition::<r#type>();
    assert_eq!(
        definition.description(),
        "Has a description that a macro makes."
    );
    assert_eq!(__toolbay_entries().len(), 9);
}
