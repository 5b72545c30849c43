//! Determines which code is compiled in a normal build.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Attribute, Meta};

/// Returns whether these attributes exclude an item from every build except tests and fuzzing.
pub(crate) fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => is_never(list.tokens.clone()),
        Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

/// Returns whether the content of an attribute is a `cfg` that excludes its item.
pub(crate) fn is_left_out_by(attribute: TokenStream) -> bool {
    let mut tokens = attribute.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(name)), Some(TokenTree::Group(group))) if name == "cfg" => {
            is_never(group.stream())
        }
        _ => false,
    }
}

fn is_never(condition: TokenStream) -> bool {
    truth(&condition.into_iter().collect::<Vec<_>>()) == Some(false)
}

/// Evaluates a condition for a normal build. Returns `None` if it depends on the platform or on
/// features.
fn truth(condition: &[TokenTree]) -> Option<bool> {
    match condition {
        [TokenTree::Ident(name)] if name == "test" || name == "fuzzing" => Some(false),
        [TokenTree::Ident(name), TokenTree::Group(group)]
            if group.delimiter() == Delimiter::Parenthesis =>
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let parts = inner
                .split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
                .filter(|part| !part.is_empty());
            let truths: Vec<Option<bool>> = parts.map(truth).collect();
            match name.to_string().as_str() {
                "not" => truths.first().copied().flatten().map(|truth| !truth),
                "any" if truths.contains(&Some(true)) => Some(true),
                "any" if truths.iter().all(|truth| *truth == Some(false)) => Some(false),
                "all" if truths.contains(&Some(false)) => Some(false),
                "all" if truths.iter().all(|truth| *truth == Some(true)) => Some(true),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_judged_for_a_build_for_use() {
        for never in [
            "test",
            "fuzzing",
            "any(test, fuzzing)",
            "all(unix, test)",
            "not(not(test))",
        ] {
            assert!(is_never(never.parse().unwrap()), "{never}");
        }
        for sometimes in [
            "unix",
            "not(test)",
            "any(test, unix)",
            "feature = \"test\"",
            "not(unix)",
            "any(test, not(test))",
        ] {
            assert!(!is_never(sometimes.parse().unwrap()), "{sometimes}");
        }
    }
}
