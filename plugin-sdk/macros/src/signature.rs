//! The parameters and the return type of a tool's function.

use crate::errors::ErrorCollector;
use syn::{FnArg, ItemFn, ReturnType, Type, parse_quote};

/// The expected signature, which ends every message about the parameters.
const EXPECTED_SIGNATURE: &str =
    "a tool is `fn name(args: Args, ctx: &Context)`, and may leave out either";

pub(crate) struct ToolSignature {
    /// The type of the arguments, if the tool takes any.
    pub(crate) args: Option<Type>,
    /// True if the tool takes the context.
    pub(crate) takes_context: bool,
    /// The return type.
    pub(crate) output: Type,
}

impl ToolSignature {
    pub(crate) fn of(function: &ItemFn) -> syn::Result<Self> {
        let mut errors = ErrorCollector::default();
        check_qualifiers(function, &mut errors);
        let output = errors.record(return_type(&function.sig.output));
        let parameters = errors.record(parse_parameters(function));
        match (output, parameters) {
            (Some(output), Some((args, context))) => errors.into_result(Self {
                args,
                takes_context: context,
                output,
            }),
            _ => Err(errors.into_error()),
        }
    }
}

fn check_qualifiers(function: &ItemFn, errors: &mut ErrorCollector) {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        errors.push(syn::Error::new_spanned(
            keyword,
            "a tool is not async: remove `async`; calls run beside each other because each has \
             an instance of its own",
        ));
    }
    if let Some(keyword) = &signature.unsafety {
        errors.push(syn::Error::new_spanned(
            keyword,
            "a tool is called with whatever the client sends: remove `unsafe`",
        ));
    }
    if let Some(abi) = &signature.abi {
        errors.push(syn::Error::new_spanned(
            abi,
            "a tool is a Rust function: remove `extern`; `export!` makes the export",
        ));
    }
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        errors.push(syn::Error::new_spanned(
            generics,
            "a tool has one schema: replace the generic parameters by concrete types",
        ));
    }
}

fn return_type(output: &ReturnType) -> syn::Result<Type> {
    match output {
        ReturnType::Default => Ok(parse_quote!(())),
        ReturnType::Type(_, output) if matches!(**output, Type::ImplTrait(_)) => {
            Err(syn::Error::new_spanned(
                output,
                "the output schema comes from the type: name it, such as `Result<Json<Count>>`",
            ))
        }
        ReturnType::Type(_, output) => Ok((**output).clone()),
    }
}

fn parse_parameters(function: &ItemFn) -> syn::Result<(Option<Type>, bool)> {
    let inputs = &function.sig.inputs;
    let mut types = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            FnArg::Typed(input) => types.push(&*input.ty),
            FnArg::Receiver(receiver) => {
                return Err(syn::Error::new_spanned(
                    receiver,
                    "a tool is a free function: move it out of the `impl` and remove `self`; \
                     nothing outlives a call, so there is no state to keep",
                ));
            }
        }
    }
    match types[..] {
        [] => Ok((None, false)),
        [only] if is_context(only) => Ok((None, true)),
        [args] => Ok((Some(check_arguments_type(args)?), false)),
        [context, args] if is_context(context) && !is_context(args) => {
            Err(syn::Error::new_spanned(
                inputs,
                format!("the arguments come before the context: {EXPECTED_SIGNATURE}"),
            ))
        }
        [args, context] if is_context(context) => Ok((Some(check_arguments_type(args)?), true)),
        [_, second] if is_named(second, "Context") => Err(context_by_value_error(second)),
        [_, second] => Err(syn::Error::new_spanned(
            second,
            format!(
                "the second parameter is the context: {EXPECTED_SIGNATURE}; more arguments are more fields of `Args`"
            ),
        )),
        _ => Err(syn::Error::new_spanned(
            inputs,
            format!(
                "too many parameters: {EXPECTED_SIGNATURE}; more arguments are more fields of `Args`"
            ),
        )),
    }
}

/// Checks the type of the arguments, as far as its tokens allow.
fn check_arguments_type(args: &Type) -> syn::Result<Type> {
    match args {
        Type::Reference(_) => Err(syn::Error::new_spanned(
            args,
            "the arguments are passed by value: remove the `&`",
        )),
        Type::ImplTrait(_) => Err(syn::Error::new_spanned(
            args,
            "a tool has one schema: replace `impl Trait` by a concrete type",
        )),
        _ if is_named(args, "Context") => Err(context_by_value_error(args)),
        _ if is_scalar(args) => Err(syn::Error::new_spanned(
            args,
            "the arguments of a tool have names: make this a field of a \
             `#[derive(Deserialize, JsonSchema)] struct Args` and take `args: Args`",
        )),
        _ => Ok(args.clone()),
    }
}

fn context_by_value_error(context: &Type) -> syn::Error {
    syn::Error::new_spanned(context, "the context is lent: take `ctx: &Context`")
}

fn is_context(parameter: &Type) -> bool {
    matches!(parameter, Type::Reference(reference)
        if reference.mutability.is_none() && is_named(&reference.elem, "Context"))
}

fn is_named(parameter: &Type, name: &str) -> bool {
    last_segment(parameter).is_some_and(|segment| segment == name)
}

/// Returns whether this is a type of the standard library that is never a JSON object.
fn is_scalar(parameter: &Type) -> bool {
    const SCALARS: [&str; 19] = [
        "String", "str", "bool", "char", "Vec", "u8", "u16", "u32", "u64", "u128", "usize", "i8",
        "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    ];
    matches!(parameter, Type::Tuple(_) | Type::Array(_) | Type::Slice(_))
        || last_segment(parameter).is_some_and(|segment| SCALARS.iter().any(|name| segment == name))
}

fn last_segment(parameter: &Type) -> Option<&syn::Ident> {
    match parameter {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(function: &ItemFn) -> (bool, bool) {
        let signature = ToolSignature::of(function).unwrap();
        (signature.args.is_some(), signature.takes_context)
    }

    #[test]
    fn both_parameters_are_optional() {
        assert_eq!(
            shape(&parse_quote!(
                fn f() {}
            )),
            (false, false)
        );
        assert_eq!(
            shape(&parse_quote!(
                fn f(args: Args) {}
            )),
            (true, false)
        );
        assert_eq!(
            shape(&parse_quote!(
                fn f(ctx: &Context) {}
            )),
            (false, true)
        );
        assert_eq!(
            shape(&parse_quote!(
                fn f(Args { a, b }: my::Args, _: &toolbay_plugin::Context) {}
            )),
            (true, true)
        );
    }

    #[test]
    fn reports_every_mistake() {
        let function = parse_quote!(
            async unsafe extern "C" fn f<T>(args: &T) -> impl Sized {}
        );
        let error = ToolSignature::of(&function).err().unwrap();
        assert_eq!(error.into_iter().count(), 6);
    }

    #[test]
    fn a_mutable_context_is_not_a_context() {
        let function = parse_quote!(
            fn f(args: Args, ctx: &mut Context) {}
        );
        let error = ToolSignature::of(&function).err().unwrap();
        assert!(
            error
                .to_string()
                .contains("`fn name(args: Args, ctx: &Context)`")
        );
    }
}
