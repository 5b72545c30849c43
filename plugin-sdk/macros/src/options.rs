//! The options in the parentheses of `#[tool(…)]`.

use crate::attribute::{self, parse_flag, parse_string, set_once};
use crate::errors::ErrorCollector;
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
pub(crate) struct ToolOptions {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    /// The task support of the tool: the name of a variant of `TaskSupport`.
    pub(crate) task_support: Option<&'static str>,
    /// The URI of the tool's view.
    pub(crate) view: Option<String>,
    /// True if the tool is only for the plugin's views.
    pub(crate) app_only: Option<bool>,
    /// A function that takes the definition and returns it.
    pub(crate) define: Option<Path>,
}

impl ToolOptions {
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut options = Self::default();
        let mut errors = ErrorCollector::default();
        for meta in &metas {
            errors.record(options.set(meta));
        }
        if options.read_only == Some(true) && options.destructive == Some(true) {
            errors.push(syn::Error::new_spanned(
                &metas,
                "a tool that is `read_only` destroys nothing: remove it or `destructive`",
            ));
        }
        errors.into_result(options)
    }

    fn set(&mut self, meta: &Meta) -> syn::Result<()> {
        match attribute::key(meta).as_str() {
            "name" => set_once(&mut self.name, meta, attribute::parse_name(meta, "a tool")?),
            "title" => set_once(&mut self.title, meta, parse_string(meta)?.value()),
            "icon" => set_once(&mut self.icon, meta, attribute::parse_icon_uri(meta)?),
            "read_only" => set_once(&mut self.read_only, meta, parse_flag(meta)?),
            "destructive" => set_once(&mut self.destructive, meta, parse_flag(meta)?),
            "idempotent" => set_once(&mut self.idempotent, meta, parse_flag(meta)?),
            "open_world" => set_once(&mut self.open_world, meta, parse_flag(meta)?),
            "task" => set_once(&mut self.task_support, meta, parse_task_support(meta)?),
            "view" => set_once(&mut self.view, meta, attribute::parse_view_uri(meta)?),
            "app_only" => set_once(&mut self.app_only, meta, parse_flag(meta)?),
            "define" => set_once(
                &mut self.define,
                meta,
                attribute::parse_define_function(meta, "Definition")?,
            ),
            _ => Err(attribute::unknown_key_error("tool", &KEYS, meta)),
        }
    }
}

/// Parses the key `task`. Returns the name of a variant of `TaskSupport`.
fn parse_task_support(meta: &Meta) -> syn::Result<&'static str> {
    if let Meta::Path(_) = meta {
        return Ok("Optional");
    }
    let literal = parse_string(meta)?;
    match literal.value().as_str() {
        "optional" => Ok("Optional"),
        "required" => Ok("Required"),
        _ => Err(syn::Error::new_spanned(
            literal,
            "`task` is \"optional\" or \"required\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn error(tokens: TokenStream) -> String {
        ToolOptions::parse(tokens).err().unwrap().to_string()
    }

    #[test]
    fn a_bare_flag_is_true() {
        let options = ToolOptions::parse(quote!(read_only, open_world = false)).unwrap();
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
        assert!(ToolOptions::parse(quote!(name = #longest)).is_ok());
        let longer = "x".repeat(129);
        assert!(error(quote!(name = #longer)).contains("1 to 128"));
    }

    #[test]
    fn a_tool_can_be_a_task_or_must_be_one() {
        let task = |tokens| ToolOptions::parse(tokens).unwrap().task_support;
        assert_eq!(task(quote!(task)), Some("Optional"));
        assert_eq!(task(quote!(task = "required")), Some("Required"));
        assert_eq!(task(quote!(read_only)), None);
        assert!(error(quote!(task = "always")).contains("\"optional\" or \"required\""));
        assert!(error(quote!(task = true)).contains("takes a string"));
    }

    #[test]
    fn a_view_is_a_uri() {
        let options = ToolOptions::parse(quote!(view = "ui://a/b", app_only)).unwrap();
        assert_eq!(
            (options.view.as_deref(), options.app_only),
            (Some("ui://a/b"), Some(true))
        );
        assert!(error(quote!(view = "view.html")).contains("begins with `ui://`"));
    }

    #[test]
    fn reports_every_mistake() {
        let error = ToolOptions::parse(quote!(nam = "a", icon = "http://a"))
            .err()
            .unwrap();
        assert_eq!(error.into_iter().count(), 2);
    }
}
