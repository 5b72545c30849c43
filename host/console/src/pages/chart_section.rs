//! The charts of calls on the overview.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use super::chart::{BarChart, ChartBar};
use crate::call_series::SeriesBucket;
use crate::chart_history::{ChartBars, ChartHistory, ChartRange};
use crate::formatting::{
    encode_query, format_amount, format_count, format_date_and_time, format_duration,
    format_recent_time, format_size,
};
use crate::paths::PATH;

/// The value of a bar, the part that failed, and its text.
type BarValue = (f64, f64, String);

/// Renders the charts of this range until `now`, and links to the other ranges.
pub(super) fn chart_section(history: &ChartHistory, range: ChartRange, now: SystemTime) -> Markup {
    let chart = history.bars(range, now);
    html! {
        section aria-labelledby="charts" {
            div.heading {
                h2 #charts { "Last " (range.label()) }
                nav.ranges aria-label="Time of the charts" {
                    @for (other, value, label) in ChartRange::ALL {
                        a href={ (PATH) "?" (encode_query(&[("range", value)])) } aria-current=[(other == range).then_some("true")] aria-label={ "Last " (label) } { (value) }
                    }
                }
            }
            (charts(&chart, range, now))
        }
    }
}

fn charts(chart: &ChartBars, range: ChartRange, now: SystemTime) -> Markup {
    let bars = &chart.bars;
    let calls: u64 = bars.iter().map(SeriesBucket::calls).sum();
    let failed: u64 = bars.iter().map(|bar| bar.failed).sum();
    let fuel = bars.iter().map(|bar| bar.fuel).fold(0, u64::saturating_add);
    let max_duration = bars.iter().map(|bar| bar.max_duration).max();
    let max_mean = bars.iter().map(SeriesBucket::mean_duration).max();
    let max_memory = bars.iter().map(|bar| bar.max_memory).max();
    let last = range.label();
    let step = toolbay_model::text::format_duration(chart.bar_length);
    let times = axis_labels(chart, now);
    let figure = |title: &str,
                  description: String,
                  format_value: fn(f64) -> String,
                  value: fn(&SeriesBucket) -> BarValue| {
        BarChart {
            title,
            description,
            format_value,
            bars: bars
                .iter()
                .map(|bar| chart_bar(chart, &step, bar, value(bar)))
                .collect(),
            times: &times,
        }
        .figure()
    };
    html! {
        div.charts {
            (figure(
                &format!("Calls per {step}"),
                format!("{} in the last {last}, {failed} of which failed", count_calls(calls)),
                |value| format_amount(to_amount(value)),
                |bar| (to_value(bar.calls()), to_value(bar.failed), format!("{}, {} failed", count_calls(bar.calls()), bar.failed)),
            ))
            (figure(
                "Mean duration",
                format!(
                    "mean durations of at most {}, and the longest call took {}",
                    format_duration(max_mean.unwrap_or_default()),
                    format_duration(max_duration.unwrap_or_default())
                ),
                |value| format_duration(Duration::from_secs_f64(value)),
                |bar| (
                    bar.mean_duration().as_secs_f64(),
                    0.0,
                    format!("{} on average, at most {}", format_duration(bar.mean_duration()), format_duration(bar.max_duration)),
                ),
            ))
            (figure(
                &format!("Fuel per {step}"),
                format!("{} fuel in the last {last}", format_amount(fuel)),
                |value| format_amount(to_amount(value)),
                |bar| (to_value(bar.fuel), 0.0, format!("{} fuel", format_amount(bar.fuel))),
            ))
            (figure(
                "Peak memory",
                format!("at most {} of memory in a call", format_size(max_memory.unwrap_or_default())),
                |value| format_size(to_amount(value)),
                |bar| (to_value(bar.max_memory), 0.0, format!("at most {} of memory", format_size(bar.max_memory))),
            ))
        }
        p.legend { span.key { "succeeded" } span.key.bad { "failed" } }
    }
}

/// Returns a bar with its text for the pointer.
fn chart_bar(
    chart: &ChartBars,
    step: &str,
    bar: &SeriesBucket,
    (value, failed, text): BarValue,
) -> ChartBar {
    ChartBar {
        value,
        failed,
        hover: format!(
            "{} UTC, {step}: {text}",
            format_date_and_time(chart.start_of(bar))
        ),
    }
}

/// Returns the labels of the horizontal axis.
fn axis_labels(chart: &ChartBars, now: SystemTime) -> [String; 3] {
    let start = |index: usize| {
        let bar = chart.bars.get(index);
        let label = bar.map(|bar| format_recent_time(chart.start_of(bar), now));
        label.unwrap_or_default()
    };
    [start(0), start(chart.bars.len() / 2), "now".to_owned()]
}

fn count_calls(calls: u64) -> String {
    format_count(usize::try_from(calls).unwrap_or(usize::MAX), "call")
}

#[expect(clippy::cast_precision_loss, reason = "charts show no more")]
fn to_value(amount: u64) -> f64 {
    amount as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the values of charts are rounded amounts"
)]
fn to_amount(value: f64) -> u64 {
    value.round() as u64
}
