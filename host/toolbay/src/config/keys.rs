//! The keys of a configuration and their values, to report changes when the file is read again.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

/// Live keys: the keys whose changes take effect while the server runs, and the tables with only
/// such keys.
const LIVE_KEYS: [&str; 10] = [
    "approve_by",
    "caller_rate_limit",
    "http.allowed_hosts",
    "http.allowed_origins",
    "http.tokens",
    "limits",
    "log",
    "rate_limit",
    "require_approval",
    "server.instructions",
];

/// The value of each key that the file or a variable sets, by qualified key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConfigKeys(BTreeMap<String, Value>);

/// The keys whose values differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyDifference {
    /// The keys that take effect while the server runs.
    pub(crate) live: Vec<String>,
    /// The keys that require a restart.
    pub(crate) after_restart: Vec<String>,
}

impl ConfigKeys {
    pub(super) fn from_table(table: &Table) -> Self {
        let mut keys = BTreeMap::new();
        collect_keys(&mut keys, "", table);
        Self(keys)
    }

    /// Returns the live keys that `next` no longer has.
    pub(crate) fn removed_live_keys(&self, next: &Self) -> Vec<&str> {
        self.0
            .keys()
            .filter(|name| !next.0.contains_key(*name) && is_live(name))
            .map(String::as_str)
            .collect()
    }

    /// Returns the keys that differ in `next`.
    pub(crate) fn difference(&self, next: &Self) -> KeyDifference {
        let names: BTreeSet<&String> = self.0.keys().chain(next.0.keys()).collect();
        let changed = names
            .into_iter()
            .filter(|name| self.0.get(*name) != next.0.get(*name))
            .cloned();
        let (live, later) = changed.partition(|name| is_live(name));
        KeyDifference {
            live,
            after_restart: later,
        }
    }

    /// Returns these keys with the live values of `next`.
    pub(crate) fn with_live_values(&self, next: &Self) -> Self {
        let retained = self.0.iter().filter(|(name, _)| !is_live(name));
        let replaced = next.0.iter().filter(|(name, _)| is_live(name));
        Self(
            retained
                .chain(replaced)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }
}

fn is_live(name: &str) -> bool {
    let within = |table: &str| {
        name.strip_prefix(table)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    LIVE_KEYS.into_iter().any(within)
}

fn collect_keys(keys: &mut BTreeMap<String, Value>, prefix: &str, table: &Table) {
    for (name, value) in table {
        let name = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Table(table) => collect_keys(keys, &name, table),
            value => drop(keys.insert(name, value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> ConfigKeys {
        ConfigKeys::from_table(&text.parse().unwrap())
    }

    #[test]
    fn live_keys_are_distinguished_from_keys_that_need_a_restart() {
        let old = keys(
            "log = \"info\"\npage_size = 7\n[limits]\nfuel = 1\n[server]\ncalls = 2\ninstructions = \"a\"",
        );
        let new = keys(
            "page_size = 8\n[limits]\nfuel = 2\nmemory = \"1GiB\"\n[server]\ncalls = 2\ninstructions = \"b\"\n\
             [[http.tokens]]\nname = \"ci\"\n[http.oauth.tools]\nread = [\"a\"]\n[ceilings]\nfuel = 3",
        );
        let KeyDifference {
            live,
            after_restart: later,
        } = old.difference(&new);
        assert_eq!(
            live,
            [
                "http.tokens",
                "limits.fuel",
                "limits.memory",
                "log",
                "server.instructions"
            ]
        );
        assert_eq!(
            later,
            ["ceilings.fuel", "http.oauth.tools.read", "page_size"]
        );
        // Keys that were not applied still differ the next time. Applied ones do not.
        let running = old.with_live_values(&new);
        assert_eq!(
            running.difference(&new),
            KeyDifference {
                live: vec![],
                after_restart: later
            }
        );
        assert_eq!(new.difference(&new), KeyDifference::default());
        assert!(!is_live("logs") && !is_live("server") && is_live("caller_rate_limit.calls"));
    }
}
