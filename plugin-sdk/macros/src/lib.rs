//! The macros `#[tool]`, `#[prompt]`, `#[resource]` and `#[completion]` of `toolbay-plugin`, which
//! documents and re-exports them.
//!
//! Each attribute macro adds an empty enum with the same name as the function. It leaves the
//! function unchanged, except that it removes the doc comments of parameters. Functions and types
//! have separate namespaces, so the two do not conflict, and one path, such as
//! `module::count_words`, names both.

mod attribute;
mod companion;
mod completion;
mod description;
mod entries;
mod errors;
mod expand;
mod options;
mod parameters;
mod prompt;
mod resource;
mod signature;

use errors::ErrorCollector;
use options::ToolOptions;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use signature::ToolSignature;
use syn::punctuated::Punctuated;
use syn::{ItemFn, Path, Token, parse_macro_input};

/// Makes a function a tool.
///
/// See the documentation of `toolbay-plugin`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_attribute(
        "tool",
        "its name is the tool's name and its doc comment the description",
        options,
        item,
        expand_tool,
    )
}

/// Makes a function a prompt.
///
/// See the documentation of `toolbay-plugin`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_attribute(
        "prompt",
        "its parameters are the prompt's arguments",
        options,
        item,
        prompt::expand,
    )
}

/// Makes a function a resource, or the resources of a template.
///
/// See the documentation of `toolbay-plugin`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_attribute(
        "resource",
        "its parameters are the variables of the URI",
        options,
        item,
        resource::expand,
    )
}

/// Makes a function complete an argument of a prompt or a variable of a resource template.
///
/// See the documentation of `toolbay-plugin`.
#[proc_macro_attribute]
pub fn completion(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_attribute(
        "completion",
        "it returns the values that an argument could have",
        options,
        item,
        completion::expand,
    )
}

/// Expands an attribute by calling `make`. Returns the generated code, or the mistakes as compiler
/// errors.
fn expand_attribute(
    attribute: &str,
    why: &str,
    options: TokenStream,
    item: TokenStream,
    make: fn(Tokens, &ItemFn) -> syn::Result<Tokens>,
) -> TokenStream {
    let item = parse_macro_input!(item as syn::Item);
    let syn::Item::Fn(function) = item else {
        let why = format!("`#[{attribute}]` goes on a function: {why}");
        return syn::Error::new_spanned(item, why)
            .into_compile_error()
            .into();
    };
    make(options.into(), &function)
        .unwrap_or_else(|error| {
            let error = error.into_compile_error();
            let rest = companion::generate_placeholder(&function);
            quote!(#error #rest)
        })
        .into()
}

/// Expands the paths of functions to an array of their entries. `export!` uses it.
#[doc(hidden)]
#[proc_macro]
pub fn entries(offers: TokenStream) -> TokenStream {
    let offers = parse_macro_input!(offers with Punctuated::<Path, Token![,]>::parse_terminated);
    entries::of(&offers).into()
}

fn expand_tool(options: Tokens, function: &ItemFn) -> syn::Result<Tokens> {
    // Check everything before returning an error, so that an author with two mistakes gets both
    // messages at once.
    let mut errors = ErrorCollector::default();
    let options = errors.record(ToolOptions::parse(options));
    let description = errors.record(description::of(function, "a tool"));
    let signature = errors.record(ToolSignature::of(function));
    match (options, description, signature) {
        (Some(options), Some(description), Some(signature)) => {
            Ok(expand::tool(function, &options, &description, &signature))
        }
        _ => Err(errors.into_error()),
    }
}
