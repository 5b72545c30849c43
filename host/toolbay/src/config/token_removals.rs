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
mod tests;
