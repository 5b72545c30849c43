//! Finds the paths in code, including macro calls and attributes.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};
use syn::ItemUse;

use crate::cfg;

/// A path that occurs in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Its segments, without generic arguments.
    pub(crate) path: Vec<String>,
    /// The type of the surrounding `impl`, for `Self` and `self`.
    pub(crate) of: Option<Vec<String>>,
    /// True if it is a single identifier that may also be a local variable or a field.
    pub(crate) is_doubtful: bool,
    /// True if it calls a macro.
    pub(crate) is_macro: bool,
}

/// The names in a piece of code.
#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) mentions: Vec<Mention>,
    /// The names of called methods.
    pub(crate) called: BTreeSet<String>,
    /// The `use` items in blocks.
    pub(crate) uses: Vec<ItemUse>,
    of: Option<Vec<String>>,
}

/// The attributes whose strings contain paths.
const WITH_PATHS: [&str; 2] = ["serde", "schemars"];

impl Scan {
    /// Creates a scan for the content of an `impl` of this type.
    pub(crate) fn within(of: Option<Vec<String>>) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }

    /// Scans a token stream.
    pub(crate) fn code(&mut self, code: TokenStream) {
        self.tokens(&code.into_iter().collect::<Vec<_>>());
    }

    fn tokens(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => self.attribute(tokens, at),
                TokenTree::Punct(_) | TokenTree::Literal(_) => at + 1,
                TokenTree::Group(group) => {
                    self.code(group.stream());
                    at + 1
                }
                TokenTree::Ident(name) if name == "use" => self.import(tokens, at),
                TokenTree::Ident(_) => self.path(tokens, at),
            };
        }
    }

    /// Scans an attribute and skips the item that it excludes. Returns the index of the next token.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let bracket = if is_punct(tokens.get(at + 1), '!') {
            at + 2
        } else {
            at + 1
        };
        let Some(TokenTree::Group(group)) = tokens.get(bracket) else {
            return at + 1;
        };
        if group.delimiter() != Delimiter::Bracket {
            return at + 1;
        }
        if cfg::is_left_out_by(group.stream()) {
            let rest = tokens.get(bracket + 1..).unwrap_or_default();
            let end = rest.iter().position(|token| match token {
                TokenTree::Punct(punct) => matches!(punct.as_char(), ',' | ';'),
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                _ => false,
            });
            return end.map_or(tokens.len(), |end| bracket + 2 + end);
        }
        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
        if matches!(inside.first(), Some(TokenTree::Ident(name)) if WITH_PATHS.iter().any(|known| name == known))
        {
            self.strings(group.stream());
        }
        // The attribute's own name is not a path of this crate.
        self.tokens(inside.get(1..).unwrap_or_default());
        bracket + 1
    }

    /// Scans the strings of an attribute as paths.
    fn strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.strings(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Some(code) = path_of(&literal) {
                        self.code(code);
                    }
                }
                _ => {}
            }
        }
    }

    /// Scans a `use` in a block. Returns the index of the next token.
    fn import(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let rest = tokens.get(at..).unwrap_or_default();
        let end = rest.iter().position(|token| is_punct(Some(token), ';'));
        let item = end
            .and_then(|end| rest.get(..=end))
            .map(|item| item.iter().cloned().collect::<TokenStream>());
        match item.and_then(|item| syn::parse2(item).ok()) {
            Some(item) => {
                self.uses.push(item);
                at + end.unwrap_or_default() + 1
            }
            // This is `use<'a>` of a type, or a macro's own syntax.
            None => at + 1,
        }
    }

    /// Scans the path that starts here. Returns the index of the next token.
    fn path(&mut self, tokens: &[TokenTree], begin: usize) -> usize {
        let mut path = Vec::new();
        let mut at = begin;
        while let Some(TokenTree::Ident(segment)) = tokens.get(at) {
            path.push(plain(&segment.to_string()));
            at += 1;
            if !is_colons(tokens, at) || !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
                break;
            }
            at += 2;
        }
        let before = begin.checked_sub(1).and_then(|before| tokens.get(before));
        let is_call = matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
        // This matches `a.b`, but not `a..b`. `::a` is the end of a path with generic arguments, or
        // of another crate.
        let is_after_dot = is_punct(before, '.')
            && !begin
                .checked_sub(2)
                .is_some_and(|two| is_punct(tokens.get(two), '.'));
        let is_rest = begin
            .checked_sub(2)
            .is_some_and(|two| is_colons(tokens, two));
        let is_lifetime = is_punct(before, '\'');
        if is_after_dot && is_call {
            self.called.extend(path.first().cloned());
            let is_on_self = matches!(begin.checked_sub(2).and_then(|two| tokens.get(two)), Some(TokenTree::Ident(name)) if name == "self");
            if let (true, Some(of), Some(name)) = (is_on_self, &self.of, path.first()) {
                let of_type = of.iter().cloned().chain([name.clone()]).collect();
                self.mention(of_type, false, false);
            }
        }
        if is_after_dot || is_rest || is_lifetime {
            return at;
        }
        if path.first().is_some_and(|first| first == "Self") {
            if let Some(of) = self.of.clone() {
                path.splice(..1, of);
                self.mention(path, false, false);
            }
            return at;
        }
        let is_macro = is_punct(tokens.get(at), '!')
            && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
        let is_lower = path.first().is_some_and(|name| {
            name.starts_with(|first: char| first.is_lowercase() || first == '_')
        });
        let is_field = is_punct(tokens.get(at), ':') && !is_colons(tokens, at)
            || is_punct(tokens.get(at), '=');
        let is_bound = matches!(before, Some(TokenTree::Ident(name)) if name == "let" || name == "mut" || name == "fn");
        let is_doubtful =
            path.len() == 1 && !is_macro && (is_field || is_bound || is_lower && !is_call);
        self.mention(path, is_doubtful, is_macro);
        at
    }

    fn mention(&mut self, path: Vec<String>, is_doubtful: bool, is_macro: bool) {
        let mention = Mention {
            path,
            of: self.of.clone(),
            is_doubtful,
            is_macro,
        };
        if !self.mentions.contains(&mention) {
            self.mentions.push(mention);
        }
    }
}

/// Returns a name without its `r#` prefix.
pub(crate) fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Returns the code in a string, if it is a path.
fn path_of(literal: &Literal) -> Option<TokenStream> {
    let text = literal.to_string();
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    let is_path = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
    // The parentheses make it a call, so that a single identifier is not doubtful.
    if is_path {
        format!("{text}()").parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the paths in some code. A doubtful one has a question mark.
    fn paths(code: &str) -> Vec<String> {
        let mut scan = Scan::within(Some(vec!["Me".to_owned()]));
        scan.code(code.parse().unwrap());
        let name = |mention: &Mention| {
            format!(
                "{}{}",
                mention.path.join("::"),
                if mention.is_doubtful { "?" } else { "" }
            )
        };
        scan.mentions.iter().map(name).collect()
    }

    #[test]
    fn paths_are_found_wherever_they_are() {
        assert_eq!(paths("crate::a::B::new(x)"), ["crate::a::B::new", "x?"]);
        assert_eq!(paths("Vec::<a::B>::new()"), ["Vec", "a::B"]);
        assert_eq!(
            paths("println!(\"{}\", a::b(c()))"),
            ["println", "a::b", "c"]
        );
        assert_eq!(paths("x.y.call(z)"), ["x?", "z?"]);
        assert_eq!(paths("0..a::LAST"), ["a::LAST"]);
        assert_eq!(paths("S { a: b, ..c::d() }"), ["S", "a?", "b?", "c::d"]);
        let serde = paths("#[serde(with = \"a::b\", rename = \"c-d\")] x: a::C");
        assert!(
            ["a::b", "a::C"]
                .iter()
                .all(|path| serde.contains(&(*path).to_owned())),
            "{serde:?}"
        );
        assert!(!serde.iter().any(|path| path.starts_with('c')), "{serde:?}");
    }

    #[test]
    fn self_is_the_type_of_the_impl() {
        assert_eq!(
            paths("Self::new(); self.run()"),
            ["Me::new", "self?", "Me::run"]
        );
    }

    #[test]
    fn what_is_left_out_is_skipped() {
        assert_eq!(paths("{ #[cfg(test)] a::b(); c::d() }"), ["c::d"]);
        assert_eq!(paths("#[cfg(test)] a: b::C, d: e::F"), ["d?", "e::F"]);
        assert_eq!(paths("#[cfg(unix)] a::b();"), ["unix?", "a::b"]);
    }
}
