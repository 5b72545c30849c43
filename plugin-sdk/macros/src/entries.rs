//! The list of tools in `export!`, with a clear error for anything that is not a tool.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

/// An array of the entries of these tools.
///
/// The path of a function without `#[tool]` names no type, and "expected type, found function" would not help.
/// Therefore, each path is imported under a name for which there is always a type: a glob import provides one, and an
/// import by name takes precedence if the path names a type. The type of the glob does not implement `Tool`, and the
/// compiler then prints the message that is written at the trait.
pub(crate) fn of<'a>(tools: impl IntoIterator<Item = &'a Path>) -> TokenStream {
    let entries = tools.into_iter().map(|tool| {
        // The error points to where the author wrote the path.
        let span = tool.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let candidate = Ident::new("Candidate", span.resolved_at(Span::call_site()));
        let entry = quote_spanned!(tool.span()=> ::toolbay_plugin::__private::Entry::of::<#candidate>());
        quote! {{
            #[allow(unused_imports, reason = "the one that is not needed")]
            use ::toolbay_plugin::__private::missing::*;
            use #tool as #candidate;

            #entry
        }}
    });
    quote!([#(#entries),*])
}
