//! The `#[tool]` macro of `toolbay-plugin`, which documents and re-exports it.
//!
//! The macro leaves the function unchanged and adds an empty enum of the same name. Functions and types have separate
//! namespaces, so the two do not conflict, and one path, such as `module::count_words`, names both.

mod description;
mod entries;
mod errors;
mod expand;
mod options;
mod signature;

use errors::Errors;
use options::Options;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use signature::Signature;
use syn::punctuated::Punctuated;
use syn::{ItemFn, Path, Token, parse_macro_input};

/// Makes a function a tool.
///
/// See the documentation of `toolbay-plugin`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::Item);
    let syn::Item::Fn(function) = item else {
        return syn::Error::new_spanned(
            item,
            "`#[tool]` goes on a function: its name is the tool's name and its doc comment \
             the description",
        )
        .into_compile_error()
        .into();
    };
    make(options.into(), &function)
        .unwrap_or_else(|error| {
            let error = error.into_compile_error();
            let rest = expand::mistaken(&function);
            quote!(#error #rest)
        })
        .into()
}

/// The entries of tools, given by their paths. `export!` is built on it.
#[doc(hidden)]
#[proc_macro]
pub fn entries(tools: TokenStream) -> TokenStream {
    let tools = parse_macro_input!(tools with Punctuated::<Path, Token![,]>::parse_terminated);
    entries::of(&tools).into()
}

fn make(options: Tokens, function: &ItemFn) -> syn::Result<Tokens> {
    // Check all of them before returning an error, so that an author with two mistakes sees both at once.
    let mut errors = Errors::default();
    let options = errors.take(Options::parse(options));
    let description = errors.take(description::of(function));
    let signature = errors.take(Signature::of(function));
    match (options, description, signature) {
        (Some(options), Some(description), Some(signature)) => {
            Ok(expand::tool(function, &options, &description, &signature))
        }
        _ => Err(errors.combined()),
    }
}
