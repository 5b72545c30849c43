//! Removed tokens and rights in a changed configuration file. They take effect even if the file is
//! rejected because of a mistake elsewhere.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use toml::{Table, Value};
use toolbay_mcp::NamePattern;

use super::http::Token;
use super::location::ConfigLocation;
use super::{Config, Flags, Http};

/// The tokens in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RemainingTokens(Vec<TokenEntry>);

#[derive(Debug, PartialEq, Eq)]
enum TokenEntry {
    Valid(Token),
    /// The SHA-256 of an invalid entry. The entry still exists, but its meaning is unknown.
    Invalid(String),
}

impl RemainingTokens {
    /// Reads the tokens of the current file. `None` if a mistake in the file could be the reason
    /// why tokens are missing. Blocks.
    pub(crate) fn read(
        flags: &Flags,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Option<Self> {
        let variables: Vec<_> = variables.into_iter().collect();
        Self::parse(&ConfigLocation::resolve(flags, &variables).read_unchecked()?)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let table: Table = text.parse().ok()?;
        let Some(http) = table.get("http") else {
            return Some(Self(Vec::new()));
        };
        let Some(tokens) = http.as_table()?.get("tokens") else {
            // The key may be misspelled.
            return Http::deserialize(http.clone())
                .is_ok()
                .then(|| Self(Vec::new()));
        };
        let entry = |value: &Value| match Token::deserialize(value.clone()) {
            Ok(token) => Some(TokenEntry::Valid(token)),
            Err(_) => value
                .get("sha256")
                .and_then(Value::as_str)
                .map(|hash| TokenEntry::Invalid(hash.to_lowercase())),
        };
        Some(Self(tokens.as_array()?.iter().filter_map(entry).collect()))
    }

    /// Returns the remaining rights of a token. `None` if it is removed.
    fn narrow(&self, token: &Token) -> Option<Token> {
        let hash = hex::encode(token.sha256);
        self.0.iter().find_map(|entry| match entry {
            TokenEntry::Valid(next) if next.sha256 == token.sha256 => Some(Token {
                tools: common_patterns(token.tools.as_deref(), next.tools.as_deref()),
                admin: token.admin && next.admin,
                ..token.clone()
            }),
            TokenEntry::Invalid(next) if *next == hash => Some(token.clone()),
            _ => None,
        })
    }
}

impl Config {
    /// Returns this configuration with only the tokens and rights that remain. No rights are added.
    /// `None` if all remain.
    pub(crate) fn with_remaining_tokens(&self, remaining: &RemainingTokens) -> Option<Self> {
        let tokens: Vec<Token> = self
            .http
            .tokens
            .iter()
            .filter_map(|token| remaining.narrow(token))
            .collect();
        if tokens == self.http.tokens {
            return None;
        }
        let mut narrowed = self.clone();
        narrowed.http.always_needs_token = self.http.needs_token();
        narrowed.http.replace_tokens(tokens);
        Some(narrowed)
    }
}

impl Http {
    /// Returns a token of a file that is read while the server runs. If its `tools` are missing, it
    /// keeps its previous ones: the file may be truncated there.
    pub(super) fn with_previous_tools(&self, token: &Token) -> Token {
        // A rotated token has another hash and the same name.
        let is_same = |before: &&Token| before.sha256 == token.sha256 || before.name == token.name;
        let mut previous_tokens = self
            .tokens
            .iter()
            .chain(&self.removed_tokens)
            .filter(is_same);
        let tools = token
            .tools
            .clone()
            .or_else(|| previous_tokens.find_map(|before| before.tools.clone()));
        Token {
            tools,
            ..token.clone()
        }
    }

    /// Replaces the tokens. Remembers each removed token with `tools`, unless a new token has the
    /// same name or hash.
    pub(super) fn replace_tokens(&mut self, tokens: Vec<Token>) {
        let previous = std::mem::replace(&mut self.tokens, tokens);
        let is_gone = |old: &Token| {
            let is_same = |new: &Token| new.name == old.name || new.sha256 == old.sha256;
            !self.tokens.iter().any(is_same)
        };
        let mut removed: Vec<Token> = previous
            .into_iter()
            .filter(|old| old.tools.is_some())
            .chain(std::mem::take(&mut self.removed_tokens))
            .filter(is_gone)
            .collect();
        // The newest is first.
        let mut seen = BTreeSet::new();
        removed.retain(|token| seen.insert((token.name.clone(), token.sha256)));
        self.removed_tokens = removed;
    }
}

/// Returns the patterns of tools that both lists allow. `None` allows all.
fn common_patterns(
    old: Option<&[NamePattern]>,
    new: Option<&[NamePattern]>,
) -> Option<Vec<NamePattern>> {
    let (Some(old), Some(new)) = (old, new) else {
        return old.or(new).map(<[NamePattern]>::to_vec);
    };
    let covered = |some: &[NamePattern], others: &[NamePattern]| -> Vec<NamePattern> {
        some.iter()
            .filter(|one| others.iter().any(|other| covers(other, one)))
            .cloned()
            .collect()
    };
    let mut common = covered(new, old);
    let remaining: Vec<NamePattern> = covered(old, new)
        .into_iter()
        .filter(|one| !common.contains(one))
        .collect();
    common.extend(remaining);
    Some(common)
}

/// Returns whether each name that matches `inner` also matches `outer`.
fn covers(outer: &NamePattern, inner: &NamePattern) -> bool {
    let outer_text = outer.to_string();
    let inner_text = inner.to_string();
    match outer_text.strip_suffix('*') {
        Some(prefix) => inner_text
            .strip_suffix('*')
            .unwrap_or(&inner_text)
            .starts_with(prefix),
        None => outer == inner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, digit: char, more: &str) -> String {
        format!(
            "[[http.tokens]]\nname = {name:?}\nsha256 = {:?}\n{more}\n",
            digit.to_string().repeat(64)
        )
    }

    fn config(text: &str) -> Config {
        let flags = Flags {
            plugins: Some(".".into()),
            ..Flags::default()
        };
        Config::from_text(text, &[], &flags).unwrap()
    }

    /// Name of a token, its tools, and whether it opens the console.
    type TokenSummary = (String, Option<Vec<String>>, bool);

    /// Returns the remaining tokens of a configuration when its file has this text.
    fn remaining_tokens(before: &str, now: &str) -> Option<Vec<TokenSummary>> {
        let narrowed = config(before).with_remaining_tokens(&RemainingTokens::parse(now)?)?;
        assert!(narrowed.http.needs_token(), "a token is still required");
        let texts = |tools: &Vec<NamePattern>| tools.iter().map(ToString::to_string).collect();
        let tokens = narrowed.http.tokens.iter();
        Some(
            tokens
                .map(|token| {
                    (
                        token.name.clone(),
                        token.tools.as_ref().map(texts),
                        token.admin,
                    )
                })
                .collect(),
        )
    }

    #[test]
    fn a_token_whose_tools_are_missing_keeps_its_previous_ones() {
        let tools = |before: &str, now: &str| {
            let now = config(now).http.tokens.remove(0);
            let tools = config(before).http.with_previous_tools(&now).tools;
            tools.map(|tools| tools.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let before = token("ci", 'a', "tools = [\"x\"]");
        let previous_tools = Some(vec!["x".to_owned()]);
        assert_eq!(tools(&before, &token("ci", 'a', "")), previous_tools);
        assert_eq!(
            tools(&before, &token("ci", 'b', "")),
            previous_tools,
            "a rotated token"
        );
        assert_eq!(
            tools(&before, &token("cd", 'a', "")),
            previous_tools,
            "a renamed token"
        );
        assert_eq!(tools(&before, &token("cd", 'b', "")), None, "another token");
        assert_eq!(
            tools(&before, &token("ci", 'b', "tools = [\"y\"]")),
            Some(vec!["y".to_owned()])
        );
    }

    #[test]
    fn a_token_that_was_removed_and_is_added_again_keeps_its_tools() {
        let reload = |running: &Config, text: &str| {
            let remaining = RemainingTokens::parse(text).unwrap();
            let narrowed = running.with_remaining_tokens(&remaining);
            let narrowed = narrowed.unwrap_or_else(|| running.clone());
            narrowed.with_live_settings(&config(text)).unwrap()
        };
        let tools = |config: &Config| {
            let [token] = &*config.http.tokens else {
                panic!("one token: {:?}", config.http.tokens);
            };
            let tools = token.tools.as_ref();
            tools.map(|tools| tools.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let previous_tools = Some(vec!["x".to_owned()]);
        let restricted = config(&token("ci", 'a', "tools = [\"x\"]"));
        // The removal counts first, because it takes effect even if the file is invalid.
        let rotated = reload(&restricted, &token("ci", 'b', ""));
        assert_eq!(tools(&rotated), previous_tools);
        let emptied = reload(&restricted, "");
        assert_eq!(emptied.http.tokens, []);
        for again in [
            token("ci", 'a', ""),
            token("ci", 'b', ""),
            token("cd", 'a', ""),
        ] {
            assert_eq!(tools(&reload(&emptied, &again)), previous_tools, "{again}");
        }
        let widened = reload(&emptied, &token("ci", 'b', "tools = [\"*\"]"));
        assert_eq!(tools(&widened), Some(vec!["*".to_owned()]));
        assert_eq!(widened.http.removed_tokens, []);
        assert_eq!(tools(&reload(&emptied, &token("cd", 'b', ""))), None);
        // Rotations do not accumulate.
        let mut running = restricted;
        for digit in "bcdef0123456789".chars() {
            running = reload(&running, &token("ci", digit, ""));
            assert_eq!(tools(&running), previous_tools);
            assert_eq!(running.http.removed_tokens, []);
        }
    }

    #[test]
    fn removals_take_effect_and_additions_do_not() {
        let ada = token("ada", 'a', "");
        let bob = token("bob", 'b', "tools = [\"x.*\", \"y\"]\nadmin = true");
        let both = format!("{ada}{bob}");
        let whole = |name: &str| (name.to_owned(), None, false);
        assert_eq!(remaining_tokens(&both, &ada), Some(vec![whole("ada")]));
        assert_eq!(remaining_tokens(&both, ""), Some(vec![]));
        assert_eq!(
            remaining_tokens(&both, &format!("page_sise = 7\n{ada}")),
            Some(vec![whole("ada")]),
            "a mistake elsewhere"
        );
        // Additions and wider rights wait until the whole file is read.
        assert_eq!(remaining_tokens(&ada, &both), None);
        assert_eq!(
            remaining_tokens(&bob, &token("bob", 'b', "admin = true")),
            None
        );
        let narrower = token("bob", 'b', "tools = [\"x.a\", \"y*\", \"z\"]");
        let tools = ["x.a", "y"].map(str::to_owned).to_vec();
        assert_eq!(
            remaining_tokens(&bob, &narrower),
            Some(vec![("bob".to_owned(), Some(tools), false)])
        );
        // An invalid entry still exists. Its rights are unknown, so they stay.
        assert_eq!(
            remaining_tokens(
                &both,
                &format!("{ada}{}", token("bob", 'b', "tols = [\"q\"]"))
            ),
            None
        );
        // A misspelled key cannot be distinguished from a removed one, and a truncated line is
        // ambiguous.
        assert_eq!(
            remaining_tokens(&both, &both.replace("tokens", "tokns")),
            None
        );
        assert_eq!(remaining_tokens(&both, &both[..both.len() - 3]), None);
    }
}
