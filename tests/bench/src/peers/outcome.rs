//! The results of all servers, as tables and charts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::figure::Figure;
use super::round::Measured;
use toolbay_report::{Bars, Markdown, Page, Panel, Sample, number};

/// The server with which others are compared.
const NATIVE: &str = "native";

/// All rounds of all servers.
#[derive(Default)]
pub(super) struct Outcome {
    samples: BTreeMap<(Figure, &'static str), Sample>,
    failures: BTreeSet<String>,
}

impl Outcome {
    /// Adds a round of a server.
    pub(super) fn add(&mut self, server: &'static str, measured: Measured) {
        for (figure, value) in measured.figures {
            self.samples.entry((figure, server)).or_default().add(value);
        }
        self.failures.extend(measured.failures);
    }

    pub(super) fn failures(&self) -> &BTreeSet<String> {
        &self.failures
    }

    fn sample(&self, figure: Figure, server: &'static str) -> Option<&Sample> {
        self.samples.get(&(figure, server))
    }

    /// Returns the medians with their ratios, and the minimum and maximum values.
    pub(super) fn tables(&self, servers: &[&'static str]) -> String {
        let header = || std::iter::once("").chain(servers.iter().copied());
        let mut medians = Markdown::new(header());
        let mut ranges = Markdown::new(header());
        for figure in Figure::ALL {
            let better = if figure.unit().is_cost() {
                ""
            } else {
                " (more is better)"
            };
            let cells = |cell: &dyn Fn(&'static str) -> String| {
                let title = format!("{}{better}", figure.title());
                std::iter::once(title)
                    .chain(servers.iter().map(|server| cell(server)))
                    .collect::<Vec<_>>()
            };
            medians.row(cells(&|server| self.median(figure, server)));
            ranges.row(cells(&|server| self.range(figure, server)));
        }
        format!(
            "Medians over the rounds; in brackets, how many times that of `{NATIVE}` it is:\n\n{medians}\n\
             The least and the greatest of the rounds:\n\n{ranges}"
        )
    }

    fn median(&self, figure: Figure, server: &'static str) -> String {
        let Some((sample, median)) = self
            .sample(figure, server)
            .and_then(|sample| Some((sample, sample.median()?)))
        else {
            return String::new();
        };
        let native = self.sample(figure, NATIVE).filter(|_| server != NATIVE);
        let ratio = native
            .and_then(|native| sample.ratio(native))
            .map(|ratio| format!(" ({ratio:.2})"));
        format!(
            "{}{}",
            figure.unit().words(median),
            ratio.unwrap_or_default()
        )
    }

    fn range(&self, figure: Figure, server: &'static str) -> String {
        let range = |sample: &Sample| {
            let unit = figure.unit();
            Some(format!(
                "{} to {}",
                number(sample.least()?),
                unit.words(sample.most()?)
            ))
        };
        self.sample(figure, server)
            .and_then(range)
            .unwrap_or_default()
    }

    /// Draws the charts. Returns the Markdown that displays them.
    pub(super) fn charts(&self, page: &Page, servers: &[&'static str]) -> Result<String> {
        let charts: [(&str, &str, &[Figure]); 4] = [
            (
                "start",
                "Start and memory",
                &[Figure::Cold, Figure::Idle, Figure::Own],
            ),
            (
                "stdio",
                "Standard input and output",
                &[
                    Figure::AloneMedian,
                    Figure::AloneCpu,
                    Figure::Eight,
                    Figure::SixtyFour,
                    Figure::Mebibyte,
                ],
            ),
            (
                "fairness",
                "A light call beside calls that compute",
                &[Figure::BesideTwo, Figure::BesideEight],
            ),
            (
                "http",
                "HTTP",
                &[
                    Figure::SessionAlone,
                    Figure::SessionSixtyFour,
                    Figure::SessionCpu,
                    Figure::StatelessAlone,
                    Figure::StatelessSixtyFour,
                    Figure::StatelessCpu,
                ],
            ),
        ];
        let mut text = String::new();
        for (name, title, figures) in charts {
            let panel = |figure: &Figure| Panel {
                title: figure.title().to_owned(),
                unit: figure.unit(),
                bars: servers
                    .iter()
                    .map(|server| {
                        (
                            (*server).to_owned(),
                            self.sample(*figure, server).cloned().unwrap_or_default(),
                        )
                    })
                    .collect(),
            };
            let bars = Bars {
                title: title.to_owned(),
                panels: figures.iter().map(panel).collect(),
            };
            text += &page.chart(name, title, &bars.svg())?;
            text.push('\n');
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_compare_with_the_native_server() {
        let mut outcome = Outcome::default();
        let measured = |value| Measured {
            figures: vec![(Figure::AloneMedian, value)],
            failures: Vec::new(),
        };
        for (toolbay, native) in [(150.0, 100.0), (130.0, 90.0), (140.0, 200.0)] {
            outcome.add("toolbay", measured(toolbay));
            outcome.add(NATIVE, measured(native));
        }
        outcome.add(
            "python",
            Measured {
                failures: vec!["it failed".to_owned()],
                ..Measured::default()
            },
        );
        let tables = outcome.tables(&["toolbay", NATIVE, "python"]);
        for row in [
            "p50 | 140 µs (1.40) | 100 µs |  |",
            "p50 | 130 to 150 µs | 90.0 to 200 µs |  |",
        ] {
            assert!(tables.contains(row), "{tables}");
        }
        assert_eq!(outcome.failures().len(), 1);
    }
}
