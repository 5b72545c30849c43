//! `#[completion]`: parses its target and generates the implementation of `Complete`.

use crate::errors::ErrorCollector;
use crate::{companion, parameters};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{FnArg, Ident, ItemFn, Path, Token, Type};

/// The kind of item that the function becomes, with its article, for messages.
const ITEM_KIND: &str = "a completion";

/// The expected signature, which ends every message about the parameters.
const EXPECTED_SIGNATURE: &str = "a completion is `fn name(typed: &str, given: &Given, ctx: &Context)`, and may leave out the latter two";

/// Returns the function and the implementation of its completion.
pub(crate) fn expand(options: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let mut errors = ErrorCollector::default();
    parameters::check_qualifiers(function, ITEM_KIND, &mut errors);
    let target = errors.record(parse_target(options));
    let output = errors.record(parameters::return_type(function, ITEM_KIND));
    let passed = errors.record(call_arguments(function));
    let (Some((target, argument)), Some(output), Some(passed)) = (target, output, passed) else {
        return Err(errors.into_error());
    };
    let argument = argument.unraw().to_string();
    let ident = &function.sig.ident;
    let implementation = quote! {
        impl ::toolbay_plugin::Complete for #ident {
            const TARGET: &'static str = <#target as ::toolbay_plugin::__private::Target>::TARGET;
            const ARGUMENT: &'static str = #argument;

            #[allow(unused_variables, reason = "a completion need not take everything")]
            fn complete(
                typed: &str,
                given: &::toolbay_plugin::Given,
                context: &::toolbay_plugin::Context,
            ) -> ::toolbay_plugin::Result<::toolbay_plugin::Completions> {
                <#output as ::toolbay_plugin::IntoCompletions>::into_completions(#ident(#(#passed),*))
            }
        }
    };
    errors.into_result(companion::generate(
        function,
        &[implementation],
        "Completion",
        "CompletionEntry",
    ))
}

/// Parses the path of the prompt or resource, and the name of the argument to complete.
fn parse_target(tokens: TokenStream) -> syn::Result<(Path, Ident)> {
    let usage = "say what it completes: a prompt or a resource, and the argument: `#[completion(translate, language)]`";
    if tokens.is_empty() {
        return Err(syn::Error::new(Span::call_site(), usage));
    }
    let parser = |input: ParseStream<'_>| {
        let target = input.parse()?;
        input.parse::<Token![,]>()?;
        let argument = Ident::parse_any(input)?;
        input.parse::<Option<Token![,]>>()?;
        Ok((target, argument))
    };
    parser
        .parse2(tokens)
        .map_err(|error| syn::Error::new(error.span(), usage))
}

/// Returns the expressions that the function is called with.
fn call_arguments(function: &ItemFn) -> syn::Result<Vec<TokenStream>> {
    let mut errors = ErrorCollector::default();
    let mut passed = Vec::new();
    for input in &function.sig.inputs {
        let FnArg::Typed(typed) = input else {
            errors.push(syn::Error::new_spanned(input, EXPECTED_SIGNATURE));
            continue;
        };
        let is = |name: &str| parameters::is_reference_to(&typed.ty, name);
        match (is("str"), is("Given"), is("Context")) {
            (true, _, _) => passed.push(quote!(typed)),
            (_, true, _) => passed.push(quote!(given)),
            (_, _, true) => passed.push(quote!(context)),
            _ => errors.push(syn::Error::new_spanned::<&Type, _>(
                &typed.ty,
                EXPECTED_SIGNATURE,
            )),
        }
    }
    errors.into_result(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn every_mistake_is_reported() {
        let function = parse_quote!(
            fn languages(typed: String) {}
        );
        for options in [quote!(), quote!(translate), quote!(translate, "language")] {
            let error = expand(options, &function).unwrap_err();
            let mistakes: Vec<String> = error.into_iter().map(|error| error.to_string()).collect();
            assert_eq!(mistakes.len(), 3, "{mistakes:?}");
            assert!(
                mistakes[0].contains("`#[completion(translate, language)]`"),
                "{mistakes:?}"
            );
        }
    }
}
