//! `#[resource]`: parses its options and generates the implementation of `Readable`.

use crate::errors::ErrorCollector;
use crate::parameters::{self, FunctionParameter};
use crate::{attribute, companion, description};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{ItemFn, LitStr, Meta, Path, Token};

/// The kind of item that the function becomes, with its article, for messages.
const ITEM_KIND: &str = "a resource";

const KEYS: [&str; 5] = ["name", "title", "mime_type", "icon", "define"];

#[derive(Default)]
struct ResourceOptions {
    name: Option<String>,
    title: Option<String>,
    mime_type: Option<String>,
    icon: Option<String>,
    define: Option<Path>,
}

impl ResourceOptions {
    /// Parses the URI and the options after it.
    fn parse(tokens: TokenStream) -> syn::Result<(LitStr, Self)> {
        if tokens.is_empty() {
            return Err(syn::Error::new(
                Span::call_site(),
                "a resource has a URI: `#[resource(\"notes://{id}\")]`",
            ));
        }
        let parser = |input: ParseStream<'_>| {
            let uri: LitStr = input.parse().map_err(|error| {
                syn::Error::new(
                    error.span(),
                    "the URI comes first: `#[resource(\"notes://{id}\")]`",
                )
            })?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Ok((uri, Punctuated::<Meta, Token![,]>::parse_terminated(input)?))
        };
        let (uri, metas) = parser.parse2(tokens)?;
        let (mut options, mut errors) = (Self::default(), ErrorCollector::default());
        for meta in &metas {
            errors.record(options.set(meta));
        }
        errors.into_result((uri, options))
    }

    fn set(&mut self, meta: &Meta) -> syn::Result<()> {
        match attribute::key(meta).as_str() {
            "name" => {
                attribute::set_once(&mut self.name, meta, attribute::parse_string(meta)?.value())
            }
            "title" => attribute::set_once(
                &mut self.title,
                meta,
                attribute::parse_string(meta)?.value(),
            ),
            "mime_type" => attribute::set_once(
                &mut self.mime_type,
                meta,
                attribute::parse_string(meta)?.value(),
            ),
            "icon" => attribute::set_once(&mut self.icon, meta, attribute::parse_icon_uri(meta)?),
            "define" => attribute::set_once(
                &mut self.define,
                meta,
                attribute::parse_define_function(meta, "ResourceDefinition")?,
            ),
            _ => Err(attribute::unknown_key_error("resource", &KEYS, meta)),
        }
    }
}

/// Returns the function and the implementation of its resource.
pub(crate) fn expand(options: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let mut errors = ErrorCollector::default();
    parameters::check_qualifiers(function, ITEM_KIND, &mut errors);
    let options = errors.record(ResourceOptions::parse(options));
    let description = errors.record(description::of(function, ITEM_KIND));
    let output = errors.record(parameters::return_type(function, ITEM_KIND));
    let parameters = errors.record(parameters::parse(function, ITEM_KIND));
    if let (Some((uri, _)), Some(parameters)) = (&options, &parameters) {
        errors.record(check_variables(function, uri, parameters));
    }
    let (Some((uri, options)), Some(description), Some(output), Some(parameters)) =
        (options, description, output, parameters)
    else {
        return Err(errors.into_error());
    };
    let name = options
        .name
        .unwrap_or_else(|| function.sig.ident.unraw().to_string());
    let texts = [
        ("title", &options.title),
        ("mime_type", &options.mime_type),
        ("icon", &options.icon),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| {
        let key = format_ident!("{key}");
        text.as_ref().map(|text| quote!(.#key(#text)))
    });
    let definition = quote! {
        ::toolbay_plugin::ResourceDefinition::new(<Self as ::toolbay_plugin::Readable>::URI, #name, #description)
            #(#texts)*
    };
    let definition = match &options.define {
        Some(define) => quote!(#define(#definition)),
        None => definition,
    };
    let (ident, passed) = (&function.sig.ident, parameters::call_arguments(&parameters));
    let target = quote! {
        impl ::toolbay_plugin::__private::Target for #ident {
            const TARGET: &'static str = <Self as ::toolbay_plugin::Readable>::URI;
        }
    };
    let implementation = quote! {
        impl ::toolbay_plugin::Readable for #ident {
            const URI: &'static str = #uri;

            fn definition() -> ::toolbay_plugin::ResourceDefinition {
                #definition
            }

            #[allow(unused_variables, reason = "a resource need not take anything")]
            fn read(
                uri: &str,
                arguments: &[(::std::string::String, ::std::string::String)],
                context: &::toolbay_plugin::Context,
            ) -> ::toolbay_plugin::Result<::core::option::Option<::std::vec::Vec<::toolbay_plugin::Contents>>> {
                <#output as ::toolbay_plugin::IntoContents>::into_contents(#ident(#(#passed),*))
            }
        }
    };
    errors.into_result(companion::generate(
        function,
        &[implementation, target],
        "Resource",
        "ResourceEntry",
    ))
}

/// Checks the scheme of the URI, and that the variables of the URI and the parameters of the
/// function correspond.
fn check_variables(
    function: &ItemFn,
    uri: &LitStr,
    parameters: &[FunctionParameter],
) -> syn::Result<()> {
    let text = uri.value();
    let mut errors = ErrorCollector::default();
    let scheme = text
        .split_once(':')
        .map(|(scheme, _)| scheme)
        .unwrap_or_default();
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        errors.push(syn::Error::new_spanned(
            uri,
            "a URI begins with a scheme: `notes://{id}`",
        ));
    }
    let mut variables = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((variable, after)) = after.split_once('}') else {
            errors.push(syn::Error::new_spanned(uri, "a `}` is missing"));
            break;
        };
        variables.push(variable.trim_start_matches('+'));
        rest = after;
    }
    let named = |name: &str| {
        parameters
            .iter()
            .any(|parameter| matches!(parameter, FunctionParameter::Argument(argument) if argument.name() == name))
    };
    for variable in variables.iter().filter(|variable| !named(variable)) {
        let why =
            format!("the function has no parameter for `{{{variable}}}`: add `{variable}: String`");
        errors.push(syn::Error::new_spanned(&function.sig.ident, why));
    }
    for parameter in parameters {
        if let FunctionParameter::Argument(argument) = parameter
            && !variables.contains(&argument.name().as_str())
        {
            let why = format!("the URI has no variable `{{{}}}`", argument.name());
            errors.push(syn::Error::new_spanned(&argument.ident, why));
        }
    }
    errors.into_result(())
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
    fn variables_and_parameters_correspond() {
        let function = parse_quote! {
            /// A note.
            fn note(ids: String, ctx: &Context) -> String {}
        };
        let mistakes = mistakes(quote!("notes://{id}/{+rest}"), &function);
        for expected in [
            "no parameter for `{id}`",
            "no parameter for `{rest}`",
            "no variable `{ids}`",
        ] {
            assert!(mistakes.contains(expected), "{expected}: {mistakes}");
        }
    }

    #[test]
    fn a_resource_has_a_uri() {
        let function = parse_quote! {
            /// A note.
            fn note() -> String {}
        };
        assert!(mistakes(quote!(), &function).contains("a resource has a URI"));
        assert!(mistakes(quote!(title = "a"), &function).contains("the URI comes first"));
        assert!(mistakes(quote!("note"), &function).contains("begins with a scheme"));
        assert!(mistakes(quote!("a:{b"), &function).contains("`}` is missing"));
        assert!(
            mistakes(quote!("a:b", mimetype = "a/b"), &function)
                .contains("did you mean `mime_type`?")
        );
        assert!(expand(quote!("a:b", mime_type = "a/b"), &function).is_ok());
    }
}
