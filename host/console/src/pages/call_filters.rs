//! The form that selects calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use maud::{Markup, html};

use crate::call_filter::{CallFilter, CallOrder};
use crate::call_note::CallNote;
use crate::paths::PATH;

/// Maximum number of choices of a field.
const MAX_CHOICES: usize = 200;

/// Renders the form with the choices that the stored calls have.
pub(super) fn filter_form<'a>(
    filter: &CallFilter,
    calls: impl Iterator<Item = &'a Arc<CallNote>>,
) -> Markup {
    let (mut plugins, mut outcomes, mut callers) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for call in calls {
        plugins.extend(call.plugin.as_deref());
        outcomes.insert(call.outcome);
        callers.insert(call.caller.as_str());
    }
    let is_refined = ["plugin", "outcome", "caller", "from", "until", "sort"]
        .iter()
        .any(|name| !filter.value(name).is_empty());
    html! {
        form.search.wide role="search" method="get" action={ (PATH) "/calls" } {
            label {
                span { "Tool, plugin, caller or outcome" }
                input type="search" name="q" value=(filter.value("q")) autocomplete="off" spellcheck="false" data-search;
            }
            label.check { input type="checkbox" name="failed" value="yes" checked[!filter.value("failed").is_empty()]; " Failed only" }
            button type="submit" { "Search" }
            details.filters open[is_refined] {
                summary { "Filters and order" }
                div.fields {
                    (choice_field("plugin", "Plugin", filter, plugins))
                    (choice_field("outcome", "Outcome", filter, outcomes))
                    (choice_field("caller", "Caller", filter, callers))
                    (time_field("from", "From (UTC)", filter))
                    (time_field("until", "Until (UTC)", filter))
                    label {
                        span { "Order" }
                        select name="sort" {
                            @for (order, value, label) in CallOrder::ALL {
                                option value=(if order == CallOrder::Newest { "" } else { value }) selected[order == filter.order] { (label) }
                            }
                        }
                    }
                }
                p.hint { a href={ (PATH) "/calls" } { "Remove all filters" } }
            }
        }
        @for mistake in &filter.mistakes { p.error role="alert" { (mistake) } }
    }
}

fn choice_field(name: &str, label: &str, filter: &CallFilter, known: BTreeSet<&str>) -> Markup {
    let value = filter.value(name);
    let mut choices: Vec<&str> = known.into_iter().take(MAX_CHOICES).collect();
    // Its calls may no longer be stored.
    if !value.is_empty() && !choices.contains(&value) {
        choices.push(value);
    }
    html! {
        label {
            span { (label) }
            select name=(name) {
                option value="" { "all" }
                @for choice in choices { option value=(choice) selected[choice == value] { (choice) } }
            }
        }
    }
}

fn time_field(name: &str, label: &str, filter: &CallFilter) -> Markup {
    html! {
        label {
            span { (label) }
            input type="datetime-local" step="1" name=(name) value=(filter.value(name));
        }
    }
}
