//! The layout of a chart.

use crate::axis::Axis;
use crate::canvas::{Canvas, Color, float, index};
use crate::font::{self, LARGE, SMALL};
use crate::series::Series;

const BACKGROUND: Color = [255, 255, 255];
const TEXT: Color = [45, 55, 72];
const GRID: Color = [226, 232, 240];
const BASE: Color = [113, 128, 150];
const DATA: Color = [43, 108, 176];

/// The space around the chart, and between labels and the items they describe.
const MARGIN: f64 = 16.0;
const GAP: f64 = 8.0;

/// Maximum length of a label, because the picture is for the values.
const LABEL_ROOM: usize = 16;

/// Maximum number of points that are drawn with dots. More dots would overlap.
const MAX_DOTS: usize = 60;

/// The style in which values are drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Style {
    Bars,
    Line,
}

/// Draws a chart.
pub(crate) fn draw(title: &str, series: &Series, style: Style, size: (usize, usize)) -> Canvas {
    let (low, high) = series.range();
    let axis = match style {
        // The length of a bar represents its value, so the axis starts at 0.
        Style::Bars => Axis::over(low.min(0.0), high.max(0.0)),
        Style::Line => Axis::over(low, high),
    };
    let ticks = axis.ticks();
    let widest = ticks
        .iter()
        .map(|(_, label)| SMALL.width(label))
        .fold(0.0, f64::max);
    let width = float(size.0);
    let height = float(size.1);
    let mut plot = Plot {
        canvas: Canvas::new(size, BACKGROUND),
        left: MARGIN + widest + GAP,
        right: width - MARGIN,
        top: MARGIN
            + if title.is_empty() {
                0.0
            } else {
                LARGE.height() + MARGIN
            },
        bottom: height - MARGIN - SMALL.height() - GAP,
        axis,
        series,
    };
    let title = font::shorten(title, LARGE.room(width - 2.0 * MARGIN));
    LARGE.write(&mut plot.canvas, (MARGIN, MARGIN), &title, TEXT);
    plot.grid(&ticks);
    match style {
        Style::Bars => plot.bars(),
        Style::Line => plot.line(),
    }
    plot.base();
    plot.labels(style, width);
    plot.canvas
}

struct Plot<'a> {
    canvas: Canvas,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    axis: Axis,
    series: &'a Series,
}

impl Plot<'_> {
    /// Returns the width of the slot of one value.
    fn slot(&self) -> f64 {
        (self.right - self.left) / float(self.series.points().len())
    }

    /// Returns the centre of a value's slot.
    fn x(&self, number: usize) -> f64 {
        self.left + self.slot() * (float(number) + 0.5)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.position(value) * (self.bottom - self.top)
    }

    /// Draws a horizontal line that is one whole pixel thick, so that it is not blurred.
    fn rule(&mut self, value: f64, color: Color) {
        let y = self.y(value).round();
        self.canvas
            .fill((self.left, y), (self.right, y + 1.0), color);
    }

    fn grid(&mut self, ticks: &[(f64, String)]) {
        for (value, label) in ticks {
            self.rule(*value, GRID);
            let place = (
                self.left - GAP - SMALL.width(label),
                self.y(*value) - SMALL.height() / 2.0,
            );
            SMALL.write(&mut self.canvas, place, label, TEXT);
        }
    }

    /// Draws the line of 0, or the lower edge if 0 is not in the picture.
    fn base(&mut self) {
        self.rule(self.axis.base(), BASE);
    }

    fn bars(&mut self) {
        let base = self.y(0.0).round();
        // Thin bars have no gap, because it would swallow them.
        let half = self.slot() * if self.slot() > 4.0 { 0.35 } else { 0.5 };
        for (number, point) in self.series.points().iter().enumerate() {
            let x = self.x(number);
            let y = self.y(point.value);
            let top = y.min(base);
            let bottom = y.max(base);
            self.canvas.fill((x - half, top), (x + half, bottom), DATA);
        }
    }

    fn line(&mut self) {
        let points = self.series.points().iter().enumerate();
        let places: Vec<_> = points
            .map(|(number, point)| (self.x(number), self.y(point.value)))
            .collect();
        let lines = places.iter().zip(places.iter().skip(1));
        self.canvas
            .stroke(lines.map(|(from, to)| (*from, *to)), 2.0, DATA);
        if places.len() <= MAX_DOTS {
            self.canvas
                .stroke(places.iter().map(|place| (*place, *place)), 7.0, DATA);
        }
    }

    fn labels(&mut self, style: Style, width: f64) {
        let points = self.series.points();
        let longest = points.iter().map(|point| point.label.chars().count()).max();
        let (every, room) = fit(longest.unwrap_or_default(), self.slot(), style);
        let mut free = 0.0;
        for (number, point) in points.iter().enumerate().step_by(every) {
            let label = font::shorten(&point.label, room);
            let text = SMALL.width(&label);
            // The outermost labels may be wider than their slots. They move inwards, and the last
            // label is omitted if there is no space left.
            let x = (self.x(number) - text / 2.0).clamp(0.0, (width - text).max(0.0));
            if x >= free {
                SMALL.write(&mut self.canvas, (x, self.bottom + GAP), &label, TEXT);
                free = x + text + GAP / 2.0;
            }
        }
    }
}

/// Returns the interval between displayed labels and the maximum length of each, so that labels do
/// not overlap.
fn fit(longest: usize, slot: f64, style: Style) -> (usize, usize) {
    let longest = longest.min(LABEL_ROOM);
    let in_slot = SMALL.room(slot - GAP);
    if longest <= in_slot {
        return (1, longest);
    }
    // Bars have names, and a part of each is more useful than a few in full. Points are in order,
    // so readers can infer the labels between two.
    if style == Style::Bars && in_slot >= 5 {
        return (1, in_slot);
    }
    let character = SMALL.width("0");
    let slots = (float(longest) * character + GAP) / slot;
    (index(slots.ceil()).max(1), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_fit_are_whole() {
        assert_eq!(fit(5, 60.0, Style::Bars), (1, 5));
        assert_eq!(fit(40, 200.0, Style::Line), (1, LABEL_ROOM));
    }

    #[test]
    fn names_of_bars_are_cut_before_they_are_left_out() {
        assert_eq!(fit(12, 60.0, Style::Bars), (1, SMALL.room(60.0 - GAP)));
        let (every, room) = fit(12, 20.0, Style::Bars);
        assert_eq!(room, 12);
        assert!(float(every) * 20.0 >= SMALL.width("123456789012"));
    }

    #[test]
    fn labels_of_points_are_left_out() {
        let (every, room) = fit(10, 30.0, Style::Line);
        assert_eq!(room, 10);
        assert!(every > 1);
    }

    #[test]
    fn every_style_draws_something_for_every_series() {
        for values in [vec![0.0], vec![5.0; 3], vec![-1.0, 2.0], vec![1.0; 1000]] {
            let series = Series::numbered(values).unwrap();
            for style in [Style::Bars, Style::Line] {
                let empty = Canvas::new((480, 300), BACKGROUND).png().unwrap();
                let drawn = draw("T", &series, style, (480, 300)).png().unwrap();
                assert_ne!(drawn, empty);
            }
        }
    }
}
