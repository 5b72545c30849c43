//! Generates the implementation of `Tool` for a function with `#[tool]`.

use crate::companion;
use crate::options::ToolOptions;
use crate::signature::ToolSignature;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ItemFn;
use syn::ext::IdentExt;

/// Returns the function and the implementation of its tool.
pub(crate) fn tool(
    function: &ItemFn,
    options: &ToolOptions,
    description: &TokenStream,
    signature: &ToolSignature,
) -> TokenStream {
    let ident = &function.sig.ident;
    let name = options
        .name
        .clone()
        .unwrap_or_else(|| ident.unraw().to_string());
    let definition = definition(options, description, signature);
    // An unused parameter gets no name, because rustc would warn the author about it.
    let [arguments, context] = [
        parameter_name("arguments", signature.args.is_some()),
        parameter_name("context", signature.takes_context),
    ];
    let call = call(function, signature);
    let implementation = quote! {
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
    };
    companion::generate(function, &[implementation], "Tool", "ToolEntry")
}

fn parameter_name(name: &str, read: bool) -> TokenStream {
    let name = format_ident!("{name}");
    if read { quote!(#name) } else { quote!(_) }
}

fn definition(
    options: &ToolOptions,
    description: &TokenStream,
    signature: &ToolSignature,
) -> TokenStream {
    let input = signature.args.iter();
    let output = &signature.output;
    let app_only = options
        .app_only
        .filter(|yes| *yes)
        .map(|_| quote!(.app_only()))
        .into_iter();
    let texts = [
        ("title", &options.title),
        ("icon", &options.icon),
        ("view", &options.view),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| {
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
    let task = options.task_support.iter().map(|support| {
        let support = format_ident!("{support}");
        quote!(.task_support(::toolbay_plugin::TaskSupport::#support))
    });
    let definition = quote! {
        ::toolbay_plugin::Definition::new(<Self as ::toolbay_plugin::Tool>::NAME, #description)
            #(.input::<#input>())*
            .output::<#output>()
            #(#texts)*
            #(#flags)*
            #(#task)*
            #(#app_only)*
    };
    match &options.define {
        Some(define) => quote!(#define(#definition)),
        None => definition,
    }
}

fn call(function: &ItemFn, signature: &ToolSignature) -> TokenStream {
    let ident = &function.sig.ident;
    let output = &signature.output;
    let args = signature
        .args
        .iter()
        .map(|args| quote!(::toolbay_plugin::__private::arguments::<#args>(arguments)?));
    let context = signature.takes_context.then(|| quote!(context)).into_iter();
    let parameters = args.chain(context);
    quote! {
        <#output as ::toolbay_plugin::IntoOutput>::into_output(#ident(#(#parameters),*))
    }
}
