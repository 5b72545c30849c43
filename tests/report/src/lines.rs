//! Line charts: the growth of a figure with a parameter.

use super::axis::Axis;
use super::markdown::Markdown;
use super::sample::{Sample, Unit, count, number};
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 290.0;

/// A line chart. Both axes are logarithmic.
pub struct Lines {
    /// Its title.
    pub title: String,
    /// Title of the horizontal axis.
    pub across: String,
    /// The unit of all curves.
    pub unit: Unit,
    /// The curves.
    pub series: Vec<Series>,
}

/// One curve.
pub struct Series {
    /// Its name.
    pub name: String,
    /// The horizontal values and their measurements.
    pub points: Vec<(f64, Sample)>,
}

impl Lines {
    /// Returns the chart as an SVG file.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new();
        svg.text((0.0, 18.0), Anchor::Start, "title", &self.title);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = || points().map(|(x, _)| *x);
        let ys = points()
            .flat_map(|(_, sample)| [sample.least(), sample.most()])
            .flatten();
        let across = Axis::of(xs(), true, LEFT, RIGHT).tight(
            xs().fold(f64::INFINITY, f64::min),
            xs().fold(f64::NEG_INFINITY, f64::max),
        );
        let up = Axis::of(ys, true, BOTTOM, TOP);
        for tick in up.ticks() {
            let y = up.at(tick);
            svg.line((LEFT, y), (RIGHT, y), "grid");
            svg.text(
                (LEFT - 8.0, y + 4.0),
                Anchor::End,
                "small",
                &self.unit.words(tick),
            );
        }
        for tick in across.ticks() {
            let x = across.at(tick);
            svg.line((x, TOP), (x, BOTTOM), "grid");
            svg.text((x, BOTTOM + 18.0), Anchor::Middle, "small", &count(tick));
        }
        svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
        svg.text(
            (f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0),
            Anchor::Middle,
            "",
            &self.across,
        );
        let mut x = LEFT;
        for (colour, series) in self.series.iter().enumerate() {
            svg.dot((x, 40.0), colour, &series.name);
            svg.text((x + 10.0, 44.0), Anchor::Start, "", &series.name);
            #[expect(clippy::cast_precision_loss, reason = "names are short")]
            let width = series.name.chars().count() as f64;
            x += 34.0 + 7.0 * width;
            let mut path = Vec::new();
            for (value, sample) in &series.points {
                let (Some(median), Some(least), Some(most)) =
                    (sample.median(), sample.least(), sample.most())
                else {
                    continue;
                };
                let place = (across.at(*value), up.at(median));
                svg.range(place.0, (up.at(most), up.at(least)), colour);
                let about = format!(
                    "{}, {}: {}",
                    series.name,
                    count(*value),
                    self.unit.words(median)
                );
                svg.dot(place, colour, &about);
                path.push(place);
            }
            svg.path(&path, colour);
        }
        svg.end((WIDTH, HEIGHT), &self.title, &self.words())
    }

    /// Returns the medians as a table, with the minimum and maximum values.
    pub fn table(&self) -> Markdown {
        let mut table = Markdown::new(
            std::iter::once(self.across.as_str())
                .chain(self.series.iter().map(|s| s.name.as_str())),
        );
        let mut xs: Vec<f64> = self
            .series
            .iter()
            .flat_map(|series| &series.points)
            .map(|(x, _)| *x)
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        for x in xs {
            let cell = |series: &Series| {
                let (_, sample) = series
                    .points
                    .iter()
                    .find(|(known, _)| known.total_cmp(&x).is_eq())?;
                let [median, least, most] = [sample.median()?, sample.least()?, sample.most()?];
                Some(format!(
                    "{} ({} to {})",
                    self.unit.words(median),
                    number(least),
                    number(most)
                ))
            };
            let cells = self
                .series
                .iter()
                .map(|series| cell(series).unwrap_or_default());
            table.row(std::iter::once(count(x)).chain(cells));
        }
        table
    }

    /// Describes the chart as text.
    fn words(&self) -> String {
        let series = |series: &Series| {
            let points = series.points.iter();
            let points = points.filter_map(|(x, sample)| {
                Some(format!(
                    "{} at {}",
                    self.unit.words(sample.median()?),
                    count(*x)
                ))
            });
            format!(
                "{}: {}.",
                series.name,
                points.collect::<Vec<_>>().join(", ")
            )
        };
        let all: Vec<_> = self.series.iter().map(series).collect();
        format!("Across: {}. {}", self.across, all.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_drawn() {
        let sample = |values: [f64; 3]| values.into_iter().collect();
        let lines = Lines {
            title: "What a call costs".to_owned(),
            across: "tools".to_owned(),
            unit: Unit::Microseconds,
            series: vec![
                Series {
                    name: "p50".to_owned(),
                    points: vec![
                        (1.0, sample([10.0, 11.0, 9.0])),
                        (10_000.0, sample([20.0, 30.0, 19.0])),
                    ],
                },
                Series {
                    name: "p99".to_owned(),
                    points: vec![(1.0, sample([50.0, 60.0, 40.0]))],
                },
            ],
        };
        insta::assert_snapshot!(lines.svg());
        let table = lines.table().to_string();
        assert!(
            table.contains("| 1 | 10.0 µs (9.00 to 11.0) | 50.0 µs (40.0 to 60.0) |"),
            "{table}"
        );
        assert!(
            table.contains("| 10,000 | 20.0 µs (19.0 to 30.0) |  |"),
            "{table}"
        );
        let none = Lines {
            series: Vec::new(),
            ..lines
        };
        assert!(none.svg().contains("</svg>"), "without a measurement");
    }
}
