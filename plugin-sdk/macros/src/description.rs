//! The description of a tool: the doc comment of its function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, ExprLit, ItemFn, Lit, Meta};

/// An expression for the description: a string literal if possible.
pub(crate) fn of(function: &ItemFn) -> syn::Result<TokenStream> {
    let docs: Vec<&Expr> = function.attrs.iter().filter_map(doc).collect();
    let lines: Option<Vec<String>> = docs.iter().map(|doc| text(doc)).collect();
    match lines {
        Some(lines) => {
            let description = join(&lines);
            if description.is_empty() {
                return Err(missing(function));
            }
            Ok(quote!(#description))
        }
        // One of them is `#[doc = include_str!("…")]`, which only the compiler can read.
        None => Ok(quote!(::core::concat!(#(#docs, "\n"),*).trim_ascii())),
    }
}

fn missing(function: &ItemFn) -> syn::Error {
    syn::Error::new_spanned(
        &function.sig.ident,
        format!(
            "a tool needs a description: write a doc comment, `/// What it does and when to use \
             it.`, above `fn {}`",
            function.sig.ident
        ),
    )
}

fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

fn text(doc: &Expr) -> Option<String> {
    match doc {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Removes the space that follows `///` and nothing else, so that paragraphs, lists and indented code keep their form.
fn join(docs: &[String]) -> String {
    let lines: Vec<&str> = docs
        .iter()
        .flat_map(|doc| doc.split('\n'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
        .collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn description(function: &ItemFn) -> String {
        of(function).unwrap().to_string()
    }

    #[test]
    fn keeps_paragraphs_and_lists() {
        let function = parse_quote! {
            /// Counts words.
            ///
            /// - one
            ///   two
            fn count() {}
        };
        assert_eq!(description(&function), r#""Counts words.\n\n- one\n  two""#);
    }

    #[test]
    fn an_included_file_is_read_by_the_compiler() {
        let function = parse_quote! {
            #[doc = include_str!("count.md")]
            fn count() {}
        };
        assert!(description(&function).contains("include_str"));
    }

    #[test]
    fn an_empty_comment_is_no_description() {
        let function = parse_quote! {
            ///
            fn count() {}
        };
        let error = of(&function).unwrap_err().to_string();
        assert!(error.contains("above `fn count`"), "{error}");
    }
}
