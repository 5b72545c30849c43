//! The list of tools in `export!`, with a good word for what is none.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

/// An array of the entries of these tools.
///
/// A path to a function without `#[tool]` names no type, and "expected type,
/// found function" helps nobody. So each path is imported under a name for which
/// there is a type in any case: a glob has one, and an import by name, if what
/// it names is a type, goes before a glob. The other type has no `Tool`, and
/// the compiler says of that what is written at the trait.
pub(crate) fn of<'a>(tools: impl IntoIterator<Item = &'a Path>) -> TokenStream {
    let entries = tools.into_iter().map(|tool| {
        // Where the author wrote it is where the mistake is.
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
