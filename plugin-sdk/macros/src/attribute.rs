//! Parsers of the keys in the parentheses of an attribute, such as `title = "…"`.

use syn::{Expr, ExprLit, Lit, LitStr, Meta, Path};

/// Maximum length of a name in the contract, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Sets the value of a key. Fails if the key already has a value.
pub(crate) fn set_once<T>(slot: &mut Option<T>, meta: &Meta, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(syn::Error::new_spanned(
            meta.path(),
            "this key is given twice: remove one",
        )),
    }
}

/// Parses the name of a tool or a prompt. `what` is the kind of the item, with its article, for the
/// message.
pub(crate) fn parse_name(meta: &Meta, what: &str) -> syn::Result<String> {
    let literal = parse_string(meta)?;
    let name = literal.value();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(name);
    }
    Err(syn::Error::new_spanned(
        literal,
        format!("{what}'s name has 1 to 128 characters out of `A-Z a-z 0-9 _ - .`"),
    ))
}

/// Parses the URI of an icon.
pub(crate) fn parse_icon_uri(meta: &Meta) -> syn::Result<String> {
    let literal = parse_string(meta)?;
    let uri = literal.value();
    if uri.starts_with("data:") || uri.starts_with("https:") {
        return Ok(uri);
    }
    Err(syn::Error::new_spanned(
        literal,
        "an icon is a `data:` or an `https:` URI",
    ))
}

/// Parses the URI of a view.
pub(crate) fn parse_view_uri(meta: &Meta) -> syn::Result<String> {
    let literal = parse_string(meta)?;
    let uri = literal.value();
    if uri.starts_with("ui://") {
        return Ok(uri);
    }
    Err(syn::Error::new_spanned(
        literal,
        "the URI of a view begins with `ui://`: `ui://chart/view`",
    ))
}

/// Parses a string.
pub(crate) fn parse_string(meta: &Meta) -> syn::Result<&LitStr> {
    if let Some(Lit::Str(text)) = literal(meta) {
        return Ok(text);
    }
    let key = key(meta);
    Err(syn::Error::new_spanned(
        meta,
        format!("`{key}` takes a string: `{key} = \"…\"`"),
    ))
}

/// Parses a flag: `key`, `key = true` or `key = false`.
pub(crate) fn parse_flag(meta: &Meta) -> syn::Result<bool> {
    if let Meta::Path(_) = meta {
        return Ok(true);
    }
    if let Some(Lit::Bool(flag)) = literal(meta) {
        return Ok(flag.value);
    }
    let key = key(meta);
    Err(syn::Error::new_spanned(
        meta,
        format!("`{key}` is a flag: write `{key}` or `{key} = false`"),
    ))
}

/// Parses the path of a function that takes and returns a definition of the type `definition`.
pub(crate) fn parse_define_function(meta: &Meta, definition: &str) -> syn::Result<Path> {
    match meta {
        Meta::NameValue(syn::MetaNameValue {
            value: Expr::Path(function),
            ..
        }) => Ok(function.path.clone()),
        _ => Err(syn::Error::new_spanned(
            meta,
            format!(
                "`define` takes the name of a `fn({definition}) -> {definition}`: `define = with_icons`"
            ),
        )),
    }
}

/// Returns the key, or an empty string if the path is not a single identifier.
pub(crate) fn key(meta: &Meta) -> String {
    meta.path()
        .get_ident()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Creates an error for a key that `attribute` does not have. It suggests the most similar key.
pub(crate) fn unknown_key_error(attribute: &str, keys: &[&str], meta: &Meta) -> syn::Error {
    let key = key(meta);
    let nearest = keys
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, &key), known))
        .min()
        // A less similar suggestion would be misleading.
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    let hint = match nearest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("there are `{}`", keys.join("`, `")),
    };
    syn::Error::new_spanned(
        meta.path(),
        format!("`#[{attribute}]` has no key `{key}`: {hint}"),
    )
}

fn literal(meta: &Meta) -> Option<&Lit> {
    match meta {
        Meta::NameValue(meta) => match &meta.value {
            Expr::Lit(ExprLit { lit, .. }) => Some(lit),
            _ => None,
        },
        _ => None,
    }
}
