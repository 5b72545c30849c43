//! Selection and order of finished calls, as the page of calls and its exports request them.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::SystemTime;

use crate::call_note::CallNote;
use crate::form::{FieldValues, value_or_empty};
use crate::formatting::encode_query;
use crate::search_query::SearchQuery;

/// The fields of a filter, in the order of the form.
const FIELDS: [&str; 8] = [
    "q", "plugin", "outcome", "caller", "from", "until", "failed", "sort",
];

/// A filter of finished calls. A field that is empty matches every call.
#[derive(Clone, Debug)]
pub(crate) struct CallFilter {
    /// The fields as they were submitted.
    values: FieldValues,
    search: SearchQuery,
    from: Option<SystemTime>,
    until: Option<SystemTime>,
    pub(crate) order: CallOrder,
    /// The mistakes in the fields. With a mistake, no call matches.
    pub(crate) mistakes: Vec<String>,
}

/// The order of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// The longest first.
    Duration,
    /// The one with the most fuel first.
    Fuel,
    /// The one with the most memory first.
    Memory,
}

impl CallOrder {
    /// Every order, with its value in a form and its label.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Newest, "newest", "Newest first"),
        (Self::Oldest, "oldest", "Oldest first"),
        (Self::Duration, "duration", "Longest first"),
        (Self::Fuel, "fuel", "Most fuel first"),
        (Self::Memory, "memory", "Most memory first"),
    ];
}

impl CallFilter {
    /// Reads a filter from the fields of a form.
    pub(crate) fn from_values(values: &FieldValues) -> Self {
        let mut mistakes = Vec::new();
        let mut time = |name: &str, label: &str| {
            let text = value_or_empty(values, name).trim();
            let parsed = (!text.is_empty()).then(|| parse_time(text));
            if parsed == Some(None) {
                mistakes.push(format!(
                    "{label} is not a date and time such as 2026-05-01 08:00, in UTC."
                ));
            }
            parsed.flatten()
        };
        let (from, until) = (time("from", "From"), time("until", "Until"));
        let sort = value_or_empty(values, "sort");
        let order = CallOrder::ALL.iter().find(|(_, value, _)| *value == sort);
        if order.is_none() && !sort.is_empty() {
            mistakes.push("There is no such order.".to_owned());
        }
        Self {
            search: SearchQuery::parse(value_or_empty(values, "q")),
            from,
            until,
            order: order.map(|(order, ..)| *order).unwrap_or_default(),
            mistakes,
            values: values
                .iter()
                .filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_empty())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// Returns the value of a field; empty if it is not set.
    pub(crate) fn value(&self, name: &str) -> &str {
        value_or_empty(&self.values, name)
    }

    /// Returns whether the filter matches every call.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.keys().all(|name| name == "sort")
    }

    /// Returns the fields as a query string.
    pub(crate) fn query(&self) -> String {
        let set = FIELDS
            .iter()
            .map(|name| (*name, self.value(name)))
            .filter(|(_, value)| !value.is_empty());
        encode_query(&set.collect::<Vec<_>>())
    }

    /// Selects and sorts calls, which are the newest first. The second value is true if no call
    /// contains the words of the search, and these have similar words.
    pub(crate) fn select<'a>(
        &self,
        calls: impl Iterator<Item = &'a Arc<CallNote>>,
    ) -> (Vec<Arc<CallNote>>, bool) {
        let matching = calls.filter(|call| self.matches(call)).cloned();
        let (mut selected, is_similar) = self
            .search
            .select(matching, |query, call| query.find(call.search_texts()));
        let usage = |call: &Arc<CallNote>| call.usage.unwrap_or_default();
        match self.order {
            CallOrder::Newest => {}
            CallOrder::Oldest => selected.reverse(),
            CallOrder::Duration => selected.sort_by_key(|call| Reverse(call.duration)),
            CallOrder::Fuel => selected.sort_by_key(|call| Reverse(usage(call).fuel)),
            CallOrder::Memory => selected.sort_by_key(|call| Reverse(usage(call).memory)),
        }
        (selected, is_similar)
    }

    fn matches(&self, call: &CallNote) -> bool {
        let equals = |name: &str, actual: &str| {
            let wanted = self.value(name);
            wanted.is_empty() || wanted == actual
        };
        self.mistakes.is_empty()
            && equals("plugin", call.plugin.as_deref().unwrap_or_default())
            && equals("outcome", call.outcome)
            && equals("caller", &call.caller)
            && (self.value("failed").is_empty() || call.is_failure())
            && self.from.is_none_or(|from| call.at >= from)
            && self.until.is_none_or(|until| call.at <= until)
    }
}

/// Parses a date and time in UTC, with or without seconds, as browsers and people write it.
fn parse_time(text: &str) -> Option<SystemTime> {
    let text = text.trim_end_matches('Z').replace('T', " ");
    let with_seconds = match text.len() {
        10 => format!("{text} 00:00:00"),
        16 => format!("{text}:00"),
        _ => text,
    };
    humantime::parse_rfc3339_weak(&with_seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolbay_model::CallUsage;

    use super::*;
    use crate::call_note::tests::note;

    fn calls() -> Vec<Arc<CallNote>> {
        let call = |number: u64, plugin: &str, tool: &str, outcome, caller: &str| {
            Arc::new(CallNote {
                id: number,
                at: SystemTime::UNIX_EPOCH + Duration::from_secs(number * 60),
                plugin: Some(plugin.to_owned()),
                caller: caller.to_owned(),
                duration: Duration::from_secs(number % 3),
                usage: Some(CallUsage {
                    fuel: 100 - number,
                    memory: number % 2,
                    ..CallUsage::default()
                }),
                ..note(tool, outcome)
            })
        };
        vec![
            call(4, "text", "count_words", "ok", "stdio"),
            call(3, "calculator", "calculate_sum", "deadline", "token:ada"),
            call(2, "calculator", "calculate_statistics", "ok", "token:bob"),
            call(1, "calculator", "calculate_sum", "ok", "token:ada"),
        ]
    }

    fn select(fields: &[(&str, &str)]) -> (Vec<u64>, bool) {
        let values = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let (calls, is_similar) = CallFilter::from_values(&values).select(calls().iter());
        (calls.iter().map(|call| call.id).collect(), is_similar)
    }

    #[test]
    fn each_field_restricts_the_calls() {
        for (fields, expected) in [
            (&[][..], &[4, 3, 2, 1][..]),
            (&[("q", "sum calculate")], &[3, 1]),
            (&[("plugin", "calculator")], &[3, 2, 1]),
            (&[("plugin", "calc")], &[]),
            (&[("outcome", "deadline")], &[3]),
            (&[("failed", "yes")], &[3]),
            (&[("caller", "token:ada"), ("outcome", "ok")], &[1]),
            (&[("from", "1970-01-01T00:02")], &[4, 3, 2]),
            (
                &[
                    ("from", "1970-01-01 00:02:00"),
                    ("until", "1970-01-01T00:03:00Z"),
                ],
                &[3, 2],
            ),
            (&[("until", "1970-01-01")], &[]),
            (&[("sort", "oldest")], &[1, 2, 3, 4]),
            (&[("sort", "duration")], &[2, 4, 1, 3]),
            (&[("sort", "fuel")], &[1, 2, 3, 4]),
            (&[("sort", "memory")], &[3, 1, 4, 2]),
        ] {
            assert_eq!(select(fields), (expected.to_vec(), false), "{fields:?}");
        }
        assert_eq!(select(&[("q", "calculate_statisitcs")]), (vec![2], true));
    }

    #[test]
    fn a_mistake_matches_nothing_and_is_reported() {
        for field in [
            ("from", "yesterday"),
            ("until", "1970-13-01"),
            ("sort", "x"),
        ] {
            assert_eq!(select(&[field]), (vec![], false), "{field:?}");
        }
    }

    #[test]
    fn a_filter_is_a_query_again() {
        let values: FieldValues = [
            ("q", "a b"),
            ("plugin", "x&y"),
            ("other", "z"),
            ("from", ""),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        let filter = CallFilter::from_values(&values);
        assert_eq!(filter.query(), "q=a+b&plugin=x%26y");
        assert!(!filter.is_empty());
    }
}
