//! The budget of a grant: what the calls of a plugin may use per day.

use std::fmt;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use toolbay_model::setting::positive;
use toolbay_model::text::format_thousands;

/// What the calls of a plugin may use per day, from 00:00 to 24:00 UTC: `[budget]`. `None` means
/// that there is no budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrantBudget {
    /// Number of calls.
    #[serde(deserialize_with = "positive")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Fuel of all calls together.
    #[serde(deserialize_with = "positive")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Bytes that all calls together send and receive in HTTP requests and TCP connections.
    #[serde(deserialize_with = "positive")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_bytes: Option<ByteSize>,
    /// The calls that share the budget.
    pub scope: BudgetScope,
}

/// The calls that share a budget. The stricter scope is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    /// Those of one caller. Callers without an identity share one budget.
    Caller,
    /// All calls of the plugin.
    #[default]
    Plugin,
}

impl GrantBudget {
    /// Returns whether anything is bounded.
    pub fn is_set(&self) -> bool {
        self.calls.is_some() || self.fuel.is_some() || self.network_bytes.is_some()
    }

    /// Returns a budget that allows only what both allow.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        let scope = match (self.is_set(), other.is_set()) {
            (true, false) => self.scope,
            (false, true) => other.scope,
            _ => self.scope.max(other.scope),
        };
        Self {
            calls: least(self.calls, other.calls),
            fuel: least(self.fuel, other.fuel),
            network_bytes: least(self.network_bytes, other.network_bytes),
            scope,
        }
    }
}

/// Describes the budget in words.
impl fmt::Display for GrantBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.calls
                .map(|calls| format!("{} calls", format_thousands(calls))),
            self.fuel
                .map(|fuel| format!("{} fuel", format_thousands(fuel))),
            self.network_bytes
                .map(|bytes| format!("{} of network traffic", bytes.display().iec())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))?;
        f.write_str(match self.scope {
            BudgetScope::Plugin => " per day",
            BudgetScope::Caller => " per day and caller",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: &str) -> GrantBudget {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn two_budgets_together_allow_what_both_allow() {
        let one = budget("calls = 3\nfuel = 10\nscope = \"caller\"");
        let other = budget("calls = 2\nnetwork_bytes = \"1KiB\"");
        let both = one.intersection(&other);
        assert_eq!(
            both,
            budget("calls = 2\nfuel = 10\nnetwork_bytes = \"1KiB\"\nscope = \"plugin\"")
        );
        assert_eq!(both, other.intersection(&one));
        let none = GrantBudget::default();
        assert_eq!(one.intersection(&none), one);
        assert_eq!(none.intersection(&one), one);
        assert_eq!(
            both.to_string(),
            "2 calls, 10 fuel, 1.0 KiB of network traffic per day"
        );
    }

    #[test]
    fn a_budget_of_nothing_and_an_unknown_scope_are_mistakes() {
        for wrong in ["calls = 0", "fuel = -1", "scope = \"user\"", "call = 3"] {
            assert!(toml::from_str::<GrantBudget>(wrong).is_err(), "{wrong}");
        }
    }
}
