//! `#[prompt]`: parses its options and generates the implementation of `Prompt`.

use crate::errors::ErrorCollector;
use crate::parameters::{self, FunctionParameter};
use crate::{attribute, companion, description};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{ItemFn, Meta, Path, Token};

/// The kind of item that the function becomes, with its article, for messages.
const ITEM_KIND: &str = "a prompt";

const KEYS: [&str; 4] = ["name", "title", "icon", "define"];

#[derive(Default)]
struct PromptOptions {
    name: Option<String>,
    title: Option<String>,
    icon: Option<String>,
    define: Option<Path>,
}

impl PromptOptions {
    fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let (mut options, mut errors) = (Self::default(), ErrorCollector::default());
        for meta in &metas {
            errors.record(options.set(meta));
        }
        errors.into_result(options)
    }

    fn set(&mut self, meta: &Meta) -> syn::Result<()> {
        match attribute::key(meta).as_str() {
            "name" => attribute::set_once(
                &mut self.name,
                meta,
                attribute::parse_name(meta, ITEM_KIND)?,
            ),
            "title" => attribute::set_once(
                &mut self.title,
                meta,
                attribute::parse_string(meta)?.value(),
            ),
            "icon" => attribute::set_once(&mut self.icon, meta, attribute::parse_icon_uri(meta)?),
            "define" => attribute::set_once(
                &mut self.define,
                meta,
                attribute::parse_define_function(meta, "PromptDefinition")?,
            ),
            _ => Err(attribute::unknown_key_error("prompt", &KEYS, meta)),
        }
    }
}

/// Returns the function and the implementation of its prompt.
pub(crate) fn expand(options: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let mut errors = ErrorCollector::default();
    parameters::check_qualifiers(function, ITEM_KIND, &mut errors);
    let options = errors.record(PromptOptions::parse(options));
    let description = errors.record(description::of(function, ITEM_KIND));
    let output = errors.record(parameters::return_type(function, ITEM_KIND));
    let parameters = errors.record(parameters::parse(function, ITEM_KIND));
    let (Some(options), Some(description), Some(output), Some(parameters)) =
        (options, description, output, parameters)
    else {
        return Err(errors.into_error());
    };
    let name = options
        .name
        .unwrap_or_else(|| function.sig.ident.unraw().to_string());
    let arguments = parameters.iter().filter_map(|parameter| match parameter {
        FunctionParameter::Argument(argument) => Some(argument),
        FunctionParameter::Context => None,
    });
    let arguments = arguments.map(|argument| {
        let (name, ty) = (argument.name(), &argument.ty);
        let description = if let Some(text) = &argument.description {
            quote!(::core::option::Option::Some(#text))
        } else {
            quote!(::core::option::Option::None)
        };
        quote!(.argument(#name, #description, ::toolbay_plugin::__private::is_required::<#ty>()))
    });
    let texts = [("title", &options.title), ("icon", &options.icon)]
        .into_iter()
        .filter_map(|(key, text)| {
            let key = format_ident!("{key}");
            text.as_ref().map(|text| quote!(.#key(#text)))
        });
    let definition = quote! {
        ::toolbay_plugin::PromptDefinition::new(<Self as ::toolbay_plugin::Prompt>::NAME, #description)
            #(#arguments)*
            #(#texts)*
    };
    let definition = match &options.define {
        Some(define) => quote!(#define(#definition)),
        None => definition,
    };
    let (ident, passed) = (&function.sig.ident, parameters::call_arguments(&parameters));
    let target = quote! {
        impl ::toolbay_plugin::__private::Target for #ident {
            const TARGET: &'static str = <Self as ::toolbay_plugin::Prompt>::NAME;
        }
    };
    let implementation = quote! {
        impl ::toolbay_plugin::Prompt for #ident {
            const NAME: &'static str = #name;

            fn definition() -> ::toolbay_plugin::PromptDefinition {
                #definition
            }

            #[allow(unused_variables, reason = "a prompt need not take anything")]
            fn get(
                arguments: &[(::std::string::String, ::std::string::String)],
                context: &::toolbay_plugin::Context,
            ) -> ::toolbay_plugin::Result<::toolbay_plugin::Messages> {
                <#output as ::toolbay_plugin::IntoMessages>::into_messages(#ident(#(#passed),*))
            }
        }
    };
    errors.into_result(companion::generate(
        function,
        &[implementation, target],
        "Prompt",
        "PromptEntry",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn mistakes(options: TokenStream, function: &ItemFn) -> String {
        let error = expand(options, function).unwrap_err();
        error
            .into_iter()
            .map(|error| error.to_string())
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn every_mistake_is_reported() {
        let function = parse_quote!(
            async fn f(text: &str, _: u8) {}
        );
        let mistakes = mistakes(quote!(titel = "a"), &function);
        for expected in [
            "not async",
            "did you mean `title`?",
            "write a doc comment",
            "add `-> String`",
            "by value",
            "needs a name",
        ] {
            assert!(mistakes.contains(expected), "{expected}: {mistakes}");
        }
    }
}
