//! Generates the list of entries for `export!`, with a clear error for a path that has no entry.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

/// Returns an array expression with the entry of each path.
///
/// The path of a function without an attribute does not name a type, and the compiler's message
/// "expected type, found function" would not help the author. Therefore, each path is imported
/// under a name that is always a type: a glob import provides one, and an import by name takes
/// precedence if the path names a type. The type of the glob does not implement `Offer`, so the
/// compiler prints the message that is declared on the trait.
pub(crate) fn of<'a>(offers: impl IntoIterator<Item = &'a Path>) -> TokenStream {
    let entries = offers.into_iter().map(|offer| {
        // The error points to the path that the author wrote.
        let span = offer
            .segments
            .last()
            .map_or_else(Span::call_site, |last| last.ident.span());
        let candidate = Ident::new("Candidate", span.resolved_at(Span::call_site()));
        let entry =
            quote_spanned!(offer.span()=> ::toolbay_plugin::__private::Entry::of::<#candidate>());
        quote! {{
            #[allow(unused_imports, reason = "the one that is not needed")]
            use ::toolbay_plugin::__private::missing::*;
            use #offer as #candidate;

            #entry
        }}
    });
    quote!([#(#entries),*])
}
