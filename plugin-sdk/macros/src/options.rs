//! The options in the parentheses of `#[tool(…)]`.

use crate::errors::Errors;
use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitStr, Meta, Path, Token};

/// The keys, in the order in which an error lists them.
const KEYS: [&str; 8] = ["name", "title", "icon", "read_only", "destructive", "idempotent", "open_world", "define"];

/// The longest tool name that the contract allows.
const LONGEST_NAME: usize = 128;

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    /// A function that takes the definition and returns it.
    pub(crate) define: Option<Path>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut options = Self::default();
        let mut errors = Errors::default();
        for meta in &metas {
            errors.take(options.set(meta));
        }
        if options.read_only == Some(true) && options.destructive == Some(true) {
            errors.push(syn::Error::new_spanned(
                &metas,
                "a tool that is `read_only` destroys nothing: remove it or `destructive`",
            ));
        }
        errors.or(options)
    }

    fn set(&mut self, meta: &Meta) -> syn::Result<()> {
        let key = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
        match key.as_str() {
            "name" => put(&mut self.name, meta, name(meta)?),
            "title" => put(&mut self.title, meta, text(meta)?.value()),
            "icon" => put(&mut self.icon, meta, icon(meta)?),
            "read_only" => put(&mut self.read_only, meta, flag(meta)?),
            "destructive" => put(&mut self.destructive, meta, flag(meta)?),
            "idempotent" => put(&mut self.idempotent, meta, flag(meta)?),
            "open_world" => put(&mut self.open_world, meta, flag(meta)?),
            "define" => put(&mut self.define, meta, function(meta)?),
            _ => Err(unknown(meta, &key)),
        }
    }
}

fn put<T>(slot: &mut Option<T>, meta: &Meta, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(syn::Error::new_spanned(meta.path(), "this key is given twice: remove one")),
    }
}

fn name(meta: &Meta) -> syn::Result<String> {
    let literal = text(meta)?;
    let name = literal.value();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(name);
    }
    Err(syn::Error::new_spanned(literal, "a tool's name has 1 to 128 characters out of `A-Z a-z 0-9 _ - .`"))
}

fn icon(meta: &Meta) -> syn::Result<String> {
    let literal = text(meta)?;
    let uri = literal.value();
    if uri.starts_with("data:") || uri.starts_with("https:") {
        return Ok(uri);
    }
    Err(syn::Error::new_spanned(literal, "an icon is a `data:` or an `https:` URI"))
}

fn text(meta: &Meta) -> syn::Result<&LitStr> {
    if let Some(Lit::Str(text)) = literal(meta) {
        return Ok(text);
    }
    let key = path(meta);
    Err(syn::Error::new_spanned(meta, format!("`{key}` takes a string: `{key} = \"…\"`")))
}

fn flag(meta: &Meta) -> syn::Result<bool> {
    if let Meta::Path(_) = meta {
        return Ok(true);
    }
    if let Some(Lit::Bool(flag)) = literal(meta) {
        return Ok(flag.value);
    }
    let key = path(meta);
    Err(syn::Error::new_spanned(meta, format!("`{key}` is a flag: write `{key}` or `{key} = false`")))
}

fn function(meta: &Meta) -> syn::Result<Path> {
    match meta {
        Meta::NameValue(syn::MetaNameValue { value: Expr::Path(function), .. }) => Ok(function.path.clone()),
        _ => Err(syn::Error::new_spanned(
            meta,
            "`define` takes the name of a `fn(Definition) -> Definition`: `define = with_icons`",
        )),
    }
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

fn path(meta: &Meta) -> String {
    meta.path().get_ident().map(ToString::to_string).unwrap_or_default()
}

fn unknown(meta: &Meta, key: &str) -> syn::Error {
    let nearest = KEYS
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(known, key), known))
        .min()
        // A less similar suggestion would be misleading.
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    let hint = match nearest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("there are `{}`", KEYS.join("`, `")),
    };
    syn::Error::new_spanned(meta.path(), format!("`#[tool]` has no key `{key}`: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn error(tokens: TokenStream) -> String {
        Options::parse(tokens).err().unwrap().to_string()
    }

    #[test]
    fn a_bare_flag_is_true() {
        let options = Options::parse(quote!(read_only, open_world = false)).unwrap();
        assert_eq!(options.read_only, Some(true));
        assert_eq!(options.open_world, Some(false));
        assert_eq!(options.destructive, None);
    }

    #[test]
    fn names_the_nearest_key() {
        assert!(error(quote!(readonly)).contains("did you mean `read_only`?"));
        assert!(error(quote!(distructive)).contains("did you mean `destructive`?"));
        assert!(error(quote!(colour = "red")).contains("there are `name`"));
    }

    #[test]
    fn checks_names() {
        assert!(error(quote!(name = "")).contains("1 to 128"));
        assert!(error(quote!(name = "two words")).contains("1 to 128"));
        let longest = "x".repeat(LONGEST_NAME);
        assert!(Options::parse(quote!(name = #longest)).is_ok());
        let longer = "x".repeat(LONGEST_NAME + 1);
        assert!(error(quote!(name = #longer)).contains("1 to 128"));
    }

    #[test]
    fn reports_every_mistake() {
        let error = Options::parse(quote!(nam = "a", icon = "http://a")).err().unwrap();
        assert_eq!(error.into_iter().count(), 2);
    }
}
