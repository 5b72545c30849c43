//! Charts as server-rendered SVG.

use maud::{Markup, html};

use crate::formatting::format_count;

/// Width and height of the drawing, in SVG user units.
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 96.0;

/// A bar chart with one bar for each time bucket.
pub(super) struct BarChart<'a> {
    pub(super) title: &'a str,
    /// Text alternative for screen readers.
    pub(super) description: String,
    /// The maximum value, formatted.
    pub(super) max_label: String,
    /// The total value of each bar, and the part that failed.
    pub(super) bars: Vec<(f64, f64)>,
}

impl BarChart<'_> {
    /// Renders the chart as a figure.
    pub(super) fn figure(&self) -> Markup {
        let max_value = self
            .bars
            .iter()
            .map(|(value, _)| *value)
            .fold(0.0, f64::max);
        #[expect(clippy::cast_precision_loss, reason = "there are a hundred steps")]
        let width = WIDTH / self.bars.len().max(1) as f64;
        // Two digits are finer than a pixel.
        let format_coordinate = |value: f64| format!("{value:.2}");
        let height = |value: f64| {
            if max_value > 0.0 {
                (value / max_value * (HEIGHT - 2.0)).max(if value > 0.0 { 1.5 } else { 0.0 })
            } else {
                0.0
            }
        };
        html! {
            figure.chart {
                figcaption { span { (self.title) } span.most { (self.max_label) } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(self.description) {
                    line.base x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                    @for (index, (value, failed)) in self.bars.iter().enumerate() {
                        @if *value > 0.0 {
                            @let x = format_coordinate(f64::from(u32::try_from(index).unwrap_or_default()) * width + 0.5);
                            @let bar = height(*value);
                            rect.bar x=(x) width=(format_coordinate(width - 1.0)) y=(format_coordinate(HEIGHT - bar)) height=(format_coordinate(bar)) {}
                            @if *failed > 0.0 {
                                @let part = height(*failed);
                                rect.bar.bad x=(x) width=(format_coordinate(width - 1.0)) y=(format_coordinate(HEIGHT - part)) height=(format_coordinate(part)) {}
                            }
                        }
                    }
                }
                div.axis aria-hidden="true" { span { "15 min ago" } span { "now" } }
            }
        }
    }
}

/// Returns the text alternative of a chart of calls.
pub(super) fn describe_calls(calls: u64, failed: u64) -> String {
    let calls = format_count(usize::try_from(calls).unwrap_or(usize::MAX), "call");
    format!("{calls} in the last 15 minutes, {failed} of which failed")
}
