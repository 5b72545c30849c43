//! Charts as server-rendered SVG.

use maud::{Markup, html};

/// Width and height of the drawing, in SVG user units.
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 96.0;

/// A bar chart with one bar for each time bucket.
pub(super) struct BarChart<'a> {
    pub(super) title: &'a str,
    /// Text alternative for screen readers.
    pub(super) description: String,
    /// Formats a value of the vertical axis.
    pub(super) format_value: fn(f64) -> String,
    pub(super) bars: Vec<ChartBar>,
    /// Labels of the horizontal axis: the beginning, the middle and the end.
    pub(super) times: &'a [String; 3],
}

/// A bar of a chart.
pub(super) struct ChartBar {
    /// The total value.
    pub(super) value: f64,
    /// The part that failed.
    pub(super) failed: f64,
    /// The text that is shown under the pointer.
    pub(super) hover: String,
}

impl BarChart<'_> {
    /// Renders the chart as a figure.
    pub(super) fn figure(&self) -> Markup {
        let max_value = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
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
                figcaption { (self.title) }
                div.plot {
                    div.scale aria-hidden="true" {
                        @if max_value > 0.0 {
                            span { ((self.format_value)(max_value)) }
                            span { ((self.format_value)(max_value / 2.0)) }
                        } @else { span {} span {} }
                        span { "0" }
                    }
                    svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(self.description) {
                        @for y in [0.5, HEIGHT / 2.0] { line.grid x1="0" x2=(WIDTH) y1=(y) y2=(y) {} }
                        line.base x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                        @for (index, bar) in self.bars.iter().enumerate() {
                            @if bar.value > 0.0 {
                                @let x = format_coordinate(f64::from(u32::try_from(index).unwrap_or_default()) * width + 0.5);
                                @let shown = height(bar.value);
                                g {
                                    title { (bar.hover) }
                                    // The whole column reacts to the pointer, because a bar can be low.
                                    rect.column x=(x) width=(format_coordinate(width - 1.0)) y="0" height=(HEIGHT) {}
                                    rect.bar x=(x) width=(format_coordinate(width - 1.0)) y=(format_coordinate(HEIGHT - shown)) height=(format_coordinate(shown)) {}
                                    @if bar.failed > 0.0 {
                                        @let part = height(bar.failed);
                                        rect.bar.bad x=(x) width=(format_coordinate(width - 1.0)) y=(format_coordinate(HEIGHT - part)) height=(format_coordinate(part)) {}
                                    }
                                }
                            }
                        }
                    }
                }
                div.axis aria-hidden="true" { @for time in self.times { span { (time) } } }
            }
        }
    }
}
