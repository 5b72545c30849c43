//! Bar charts: several servers, with one panel for each figure.

use super::axis::Axis;
use super::sample::{Sample, Unit};
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 760.0;
const LABEL: f64 = 170.0;
const VALUE: f64 = 200.0;
const BAR: f64 = 18.0;

/// A bar chart.
pub struct Bars {
    /// Its title.
    pub title: String,
    /// Its panels, one below the other.
    pub panels: Vec<Panel>,
}

/// One figure of all servers.
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// The servers and their measurements.
    pub bars: Vec<(String, Sample)>,
}

impl Bars {
    /// Returns the chart as an SVG file.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new();
        let mut y = 26.0;
        svg.text((0.0, y), Anchor::Start, "title", &self.title);
        for panel in &self.panels {
            y += 30.0;
            let better = if panel.unit.is_cost() {
                "less is better"
            } else {
                "more is better"
            };
            svg.text(
                (0.0, y),
                Anchor::Start,
                "",
                &format!("{} ({better})", panel.title),
            );
            y += 8.0;
            let most = panel.bars.iter().filter_map(|(_, sample)| sample.most());
            let axis = Axis::of(most, false, LABEL, WIDTH - VALUE);
            for (colour, (name, sample)) in panel.bars.iter().enumerate() {
                let Some(median) = sample.median() else {
                    continue;
                };
                let least = sample.least().unwrap_or(median);
                let most = sample.most().unwrap_or(median);
                let words = panel.unit.words(median);
                let range = format!("{} to {}", panel.unit.words(least), panel.unit.words(most));
                svg.text((LABEL - 8.0, y + 13.0), Anchor::End, "", name);
                let end = axis.at(median);
                svg.bar(
                    (LABEL, y + 2.0),
                    ((end - LABEL).max(1.0), BAR - 4.0),
                    colour,
                    &format!("{name}: {words}, {range}"),
                );
                svg.line(
                    (axis.at(least), y + BAR / 2.0),
                    (axis.at(most), y + BAR / 2.0),
                    "axis",
                );
                svg.text(
                    (axis.at(most) + 8.0, y + 13.0),
                    Anchor::Start,
                    "small",
                    &format!("{words} ({range})"),
                );
                y += BAR;
            }
        }
        svg.end((WIDTH, y + 12.0), &self.title, &self.words())
    }

    /// Describes the chart as text.
    fn words(&self) -> String {
        let panel = |panel: &Panel| {
            let bars = panel.bars.iter().filter_map(|(name, sample)| {
                Some(format!("{name} {}", panel.unit.words(sample.median()?)))
            });
            format!("{}: {}.", panel.title, bars.collect::<Vec<_>>().join(", "))
        };
        self.panels.iter().map(panel).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn() {
        let sample = |values: [f64; 3]| values.into_iter().collect();
        let bars = Bars {
            title: "One call at a time".to_owned(),
            panels: vec![
                Panel {
                    title: "Median".to_owned(),
                    unit: Unit::Microseconds,
                    bars: vec![
                        ("Toolbay".to_owned(), sample([100.0, 90.0, 120.0])),
                        ("native".to_owned(), sample([80.0, 85.0, 75.0])),
                        ("missing".to_owned(), Sample::default()),
                    ],
                },
                Panel {
                    title: "Rate".to_owned(),
                    unit: Unit::PerSecond,
                    bars: Vec::new(),
                },
            ],
        };
        insta::assert_snapshot!(bars.svg());
    }
}
