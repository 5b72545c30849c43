//! The code that `#[tool]` generates beside the function.

use crate::options::Options;
use crate::signature::Signature;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;
use syn::ext::IdentExt;

/// The function and its tool.
pub(crate) fn tool(
    function: &ItemFn,
    options: &Options,
    description: &TokenStream,
    signature: &Signature,
) -> TokenStream {
    let name = options.name.clone().unwrap_or_else(|| default_name(function));
    let implementation = implementation(
        function,
        &name,
        &definition(options, description, signature),
        // A parameter that is not used gets no name, otherwise rustc would warn the author.
        [named("arguments", signature.args.is_some()), named("context", signature.context)],
        &call(function, signature),
    );
    quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::unnecessary_wraps,
            reason = "a tool owns its arguments, and may return a `Result` to be like the others"
        )]
        #function

        #implementation
    }
}

/// The function and a placeholder for the tool that it cannot be, so that the author sees the mistake and not its
/// consequences.
pub(crate) fn mistaken(function: &ItemFn) -> TokenStream {
    let unreachable = quote!(::core::unreachable!());
    // In an `impl`, which a receiver reveals, nothing can stand beside the function.
    let implementation = function.sig.receiver().is_none().then(|| {
        let unnamed = [named("arguments", false), named("context", false)];
        implementation(function, &default_name(function), &unreachable, unnamed, &unreachable)
    });
    quote! {
        #[allow(unused, reason = "it is not a tool yet")]
        #function

        #implementation
    }
}

fn default_name(function: &ItemFn) -> String {
    function.sig.ident.unraw().to_string()
}

fn named(name: &str, read: bool) -> TokenStream {
    let name = format_ident!("{name}");
    if read { quote!(#name) } else { quote!(_) }
}

fn implementation(
    function: &ItemFn,
    name: &str,
    definition: &TokenStream,
    [arguments, context]: [TokenStream; 2],
    call: &TokenStream,
) -> TokenStream {
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    // A tool that is disabled by `cfg` has no enum either.
    let cfgs: Vec<_> = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "named as the function is")]
        #visibility enum #ident {}

        #(#cfgs)*
        impl ::toolbay_plugin::Tool for #ident {
            const NAME: &'static str = #name;

            fn definition() -> ::toolbay_plugin::Definition {
                #definition
            }

            fn call(
                #arguments: &str,
                #context: &::toolbay_plugin::Context,
            ) -> ::toolbay_plugin::Result<::toolbay_plugin::Output> {
                #call
            }
        }
    }
}

fn definition(options: &Options, description: &TokenStream, signature: &Signature) -> TokenStream {
    let input = signature.args.iter();
    let output = &signature.output;
    let texts = [("title", &options.title), ("icon", &options.icon)].into_iter().filter_map(|(key, text)| {
        let key = format_ident!("{key}");
        text.as_ref().map(|text| quote!(.#key(#text)))
    });
    let flags = [
        ("read_only", options.read_only),
        ("destructive", options.destructive),
        ("idempotent", options.idempotent),
        ("open_world", options.open_world),
    ]
    .into_iter()
    .filter_map(|(key, flag)| {
        let key = format_ident!("{key}");
        flag.map(|flag| quote!(.#key(#flag)))
    });
    let definition = quote! {
        ::toolbay_plugin::Definition::new(<Self as ::toolbay_plugin::Tool>::NAME, #description)
            #(.input::<#input>())*
            .output::<#output>()
            #(#texts)*
            #(#flags)*
    };
    match &options.define {
        Some(define) => quote!(#define(#definition)),
        None => definition,
    }
}

fn call(function: &ItemFn, signature: &Signature) -> TokenStream {
    let ident = &function.sig.ident;
    let output = &signature.output;
    let args = signature.args.iter().map(|args| quote!(::toolbay_plugin::__private::arguments::<#args>(arguments)?));
    let context = signature.context.then(|| quote!(context)).into_iter();
    let parameters = args.chain(context);
    quote! {
        <#output as ::toolbay_plugin::IntoOutput>::into_output(#ident(#(#parameters),*))
    }
}
