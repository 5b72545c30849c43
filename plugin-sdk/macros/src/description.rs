//! Descriptions: the doc comments of functions and parameters.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, ExprLit, ItemFn, Lit, Meta};

/// Returns an expression for the description of the item that the function becomes. `what` is the
/// kind of the item, with its article, for the message.
pub(crate) fn of(function: &ItemFn, what: &str) -> syn::Result<TokenStream> {
    of_attributes(&function.attrs).ok_or_else(|| missing_description_error(function, what))
}

/// Returns an expression for the doc comment in these attributes, or `None` if there is no doc
/// comment. The expression is a string literal if possible.
pub(crate) fn of_attributes(attributes: &[Attribute]) -> Option<TokenStream> {
    let docs: Vec<&Expr> = attributes.iter().filter_map(doc_value).collect();
    let lines: Option<Vec<String>> = docs.iter().map(|doc| literal_text(doc)).collect();
    match lines {
        Some(lines) => Some(join_lines(&lines))
            .filter(|text| !text.is_empty())
            .map(|description| quote!(#description)),
        // One of them is not a literal, such as `#[doc = include_str!("…")]`. Only the compiler can
        // evaluate it.
        None => Some(quote!(::core::concat!(#(#docs, "\n"),*).trim_ascii())),
    }
}

fn missing_description_error(function: &ItemFn, what: &str) -> syn::Error {
    syn::Error::new_spanned(
        &function.sig.ident,
        format!(
            "{what} needs a description: write a doc comment, `/// What it does and when to use \
             it.`, above `fn {}`",
            function.sig.ident
        ),
    )
}

fn doc_value(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

fn literal_text(doc: &Expr) -> Option<String> {
    match doc {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// Joins the lines and removes the space that follows `///`. Other indentation stays, so that
/// paragraphs, lists and indented code keep their form.
fn join_lines(docs: &[String]) -> String {
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
        of(function, "a tool").unwrap().to_string()
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
        let error = of(&function, "a tool").unwrap_err().to_string();
        assert!(error.contains("above `fn count`"), "{error}");
    }
}
