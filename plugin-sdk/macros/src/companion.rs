//! Generates the companion of a function: an empty enum with the same name, which implements the
//! SDK's traits.

use crate::parameters;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;

/// Returns the function, its enum, the trait implementations of the enum, and the entry for
/// `export!`.
pub(crate) fn generate(
    function: &ItemFn,
    implementations: &[TokenStream],
    variant: &str,
    entry: &str,
) -> TokenStream {
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let (variant, entry) = (format_ident!("{variant}"), format_ident!("{entry}"));
    // A function that `cfg` disables has no enum either.
    let cfgs: Vec<_> = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect();
    let implementations = implementations
        .iter()
        .map(|implementation| quote!(#(#cfgs)* #implementation));
    let function = parameters::without_docs(function);
    quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::unnecessary_wraps,
            reason = "it owns its arguments, and may return a `Result` to be like the others"
        )]
        #function

        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "named as the function is")]
        #visibility enum #ident {}

        #(#implementations)*

        #(#cfgs)*
        impl ::toolbay_plugin::__private::Offer for #ident {
            const ENTRY: ::toolbay_plugin::__private::Entry = ::toolbay_plugin::__private::Entry::#variant(
                ::toolbay_plugin::__private::#entry::of::<Self>(),
            );
        }
    }
}

/// Returns a function that has a mistake, with a placeholder for its enum. The author then gets
/// only the message about the mistake, without errors that follow from it.
pub(crate) fn generate_placeholder(function: &ItemFn) -> TokenStream {
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let cfgs: Vec<_> = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect();
    // A receiver means that the function is in an `impl`, where an enum cannot be defined.
    let placeholder = function.sig.receiver().is_none().then(|| {
        quote! {
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(non_camel_case_types, reason = "named as the function is")]
            #visibility enum #ident {}

            #(#cfgs)*
            impl ::toolbay_plugin::__private::Offer for #ident {
                const ENTRY: ::toolbay_plugin::__private::Entry = ::toolbay_plugin::__private::Entry::Mistaken;
            }
        }
    });
    let function = parameters::without_docs(function);
    quote! {
        #[allow(unused, reason = "it has a mistake")]
        #function

        #placeholder
    }
}
