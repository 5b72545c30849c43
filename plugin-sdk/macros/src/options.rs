//! The options in the parentheses of `#[tool(…)]`.

use crate::attribute::{self, flag, put, text};
use crate::errors::Errors;
use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Meta, Path, Token};

/// The keys, in the order in which an error lists them.
const KEYS: [&str; 11] = [
    "name",
    "title",
    "icon",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "view",
    "app_only",
    "task",
    "define",
];

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    /// The task support of the tool: the name of a variant of `TaskSupport`.
    pub(crate) task: Option<&'static str>,
    /// The URI of the tool's view.
    pub(crate) view: Option<String>,
    /// True if the tool is only for the plugin's views.
    pub(crate) app_only: Option<bool>,
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
        match attribute::key(meta).as_str() {
            "name" => put(&mut self.name, meta, attribute::name(meta, "a tool")?),
            "title" => put(&mut self.title, meta, text(meta)?.value()),
            "icon" => put(&mut self.icon, meta, attribute::icon(meta)?),
            "read_only" => put(&mut self.read_only, meta, flag(meta)?),
            "destructive" => put(&mut self.destructive, meta, flag(meta)?),
            "idempotent" => put(&mut self.idempotent, meta, flag(meta)?),
            "open_world" => put(&mut self.open_world, meta, flag(meta)?),
            "task" => put(&mut self.task, meta, task(meta)?),
            "view" => put(&mut self.view, meta, attribute::view(meta)?),
            "app_only" => put(&mut self.app_only, meta, flag(meta)?),
            "define" => put(&mut self.define, meta, attribute::function(meta, "Definition")?),
            _ => Err(attribute::unknown("tool", &KEYS, meta)),
        }
    }
}

/// Parses the key `task`. Returns the name of a variant of `TaskSupport`.
fn task(meta: &Meta) -> syn::Result<&'static str> {
    if let Meta::Path(_) = meta {
        return Ok("Optional");
    }
    let literal = text(meta)?;
    match literal.value().as_str() {
        "optional" => Ok("Optional"),
        "required" => Ok("Required"),
        _ => Err(syn::Error::new_spanned(literal, "`task` is \"optional\" or \"required\"")),
    }
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
        let longest = "x".repeat(128);
        assert!(Options::parse(quote!(name = #longest)).is_ok());
        let longer = "x".repeat(129);
        assert!(error(quote!(name = #longer)).contains("1 to 128"));
    }

    #[test]
    fn a_tool_can_be_a_task_or_must_be_one() {
        let task = |tokens| Options::parse(tokens).unwrap().task;
        assert_eq!(task(quote!(task)), Some("Optional"));
        assert_eq!(task(quote!(task = "required")), Some("Required"));
        assert_eq!(task(quote!(read_only)), None);
        assert!(error(quote!(task = "always")).contains("\"optional\" or \"required\""));
        assert!(error(quote!(task = true)).contains("takes a string"));
    }

    #[test]
    fn a_view_is_a_uri() {
        let options = Options::parse(quote!(view = "ui://a/b", app_only)).unwrap();
        assert_eq!((options.view.as_deref(), options.app_only), (Some("ui://a/b"), Some(true)));
        assert!(error(quote!(view = "view.html")).contains("begins with `ui://`"));
    }

    #[test]
    fn reports_every_mistake() {
        let error = Options::parse(quote!(nam = "a", icon = "http://a")).err().unwrap();
        assert_eq!(error.into_iter().count(), 2);
    }
}
