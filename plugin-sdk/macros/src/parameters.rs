//! The parameters of a function with `#[prompt]`, `#[resource]` or `#[completion]`.

use crate::description;
use crate::errors::ErrorCollector;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, FnArg, Ident, ItemFn, Pat, ReturnType, Type};

/// A parameter of the function.
#[expect(
    clippy::large_enum_variant,
    reason = "there are a few, at compile time"
)]
pub(crate) enum FunctionParameter {
    /// The context: `ctx: &Context`.
    Context,
    /// An argument that a client passes as text.
    Argument(TextArgument),
}

/// An argument that a client passes as text.
pub(crate) struct TextArgument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The doc comment, if the parameter has one.
    pub(crate) description: Option<TokenStream>,
}

impl TextArgument {
    /// Returns the name that clients use.
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

/// Checks that the function is not async, unsafe or generic. `what` is the kind of item that the
/// function becomes, with its article.
pub(crate) fn check_qualifiers(function: &ItemFn, what: &str, errors: &mut ErrorCollector) {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        errors.push(syn::Error::new_spanned(
            keyword,
            format!("{what} is not async: remove `async`"),
        ));
    }
    if let Some(keyword) = &signature.unsafety {
        let why = format!("{what} is called with whatever the client sends: remove `unsafe`");
        errors.push(syn::Error::new_spanned(keyword, why));
    }
    if !signature.generics.params.is_empty() {
        let why = format!("{what} has no generic parameters: replace them by concrete types");
        errors.push(syn::Error::new_spanned(&signature.generics, why));
    }
}

/// Returns the return type of the function.
pub(crate) fn return_type(function: &ItemFn, what: &str) -> syn::Result<Type> {
    match &function.sig.output {
        ReturnType::Type(_, output) if matches!(**output, Type::ImplTrait(_)) => Err(
            syn::Error::new_spanned(output, format!("name the type that {what} returns")),
        ),
        ReturnType::Type(_, output) => Ok((**output).clone()),
        ReturnType::Default => Err(syn::Error::new_spanned(
            &function.sig.ident,
            format!("{what} returns something: add `-> String`"),
        )),
    }
}

/// Parses the parameters, in order.
pub(crate) fn parse(function: &ItemFn, what: &str) -> syn::Result<Vec<FunctionParameter>> {
    let mut errors = ErrorCollector::default();
    let mut parameters = Vec::new();
    for input in &function.sig.inputs {
        if let Some(parameter) = errors.record(parse_parameter(input, what)) {
            parameters.push(parameter);
        }
    }
    errors.into_result(parameters)
}

fn parse_parameter(input: &FnArg, what: &str) -> syn::Result<FunctionParameter> {
    let input = match input {
        FnArg::Typed(input) => input,
        FnArg::Receiver(receiver) => {
            let why =
                format!("{what} is a free function: move it out of the `impl` and remove `self`");
            return Err(syn::Error::new_spanned(receiver, why));
        }
    };
    if is_reference_to(&input.ty, "Context") {
        return Ok(FunctionParameter::Context);
    }
    let Pat::Ident(pattern) = &*input.pat else {
        return Err(syn::Error::new_spanned(
            &input.pat,
            "a parameter needs a name, which clients see",
        ));
    };
    if matches!(*input.ty, Type::Reference(_)) {
        let why = "an argument is passed by value: take `String`, a number, `bool`, or an `Option` of these";
        return Err(syn::Error::new_spanned(&input.ty, why));
    }
    Ok(FunctionParameter::Argument(TextArgument {
        ident: pattern.ident.clone(),
        ty: (*input.ty).clone(),
        description: description::of_attributes(&input.attrs),
    }))
}

/// Returns the function without the doc comments of its parameters, which the compiler does not
/// allow.
pub(crate) fn without_docs(function: &ItemFn) -> ItemFn {
    let mut function = function.clone();
    for input in &mut function.sig.inputs {
        let is_doc = |attribute: &Attribute| attribute.path().is_ident("doc");
        match input {
            FnArg::Typed(input) => input.attrs.retain(|attribute| !is_doc(attribute)),
            FnArg::Receiver(input) => input.attrs.retain(|attribute| !is_doc(attribute)),
        }
    }
    function
}

/// Returns the expressions to call the function with. The generated code looks up each argument in
/// `arguments` by name.
pub(crate) fn call_arguments(parameters: &[FunctionParameter]) -> Vec<TokenStream> {
    parameters
        .iter()
        .map(|parameter| match parameter {
            FunctionParameter::Context => quote!(context),
            FunctionParameter::Argument(argument) => {
                let (name, ty) = (argument.name(), &argument.ty);
                quote!(::toolbay_plugin::__private::argument::<#ty>(arguments, #name)?)
            }
        })
        .collect()
}

pub(crate) fn is_reference_to(parameter: &Type, name: &str) -> bool {
    let Type::Reference(reference) = parameter else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    reference.mutability.is_none()
        && path
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == name)
}
