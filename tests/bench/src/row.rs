//! A row of results, and the table of all rows.

use std::time::Duration;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;

/// The results of one measurement.
pub(crate) struct Row {
    what: String,
    measured: LatencyHistogram,
    idle: Option<LatencyHistogram>,
    target: Target,
}

/// The target of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// No target.
    None,
    /// The 99th percentile is at most this multiple of that of the idle server, and at most this
    /// duration.
    Beside(f64, Duration),
    /// The median is at most this duration.
    Within(Duration),
    /// The median is at most this much longer than that of the idle server.
    Over(Duration),
    /// The median is at most this multiple of that of a native client.
    Times(f64),
}

impl Row {
    pub(crate) fn new(
        what: impl Into<String>,
        measured: LatencyHistogram,
        idle: Option<&LatencyHistogram>,
        target: Target,
    ) -> Self {
        Self {
            what: what.into(),
            measured,
            idle: idle.cloned(),
            target,
        }
    }

    /// Returns whether the target was met; `None` without one.
    fn is_met(&self) -> Option<bool> {
        let idle = self.idle.as_ref();
        match self.target {
            Target::None => None,
            Target::Beside(times, most) => {
                let p99 = self.measured.percentile(99.0);
                let idle = idle?.percentile(99.0);
                Some(p99 <= idle.mul_f64(times) && p99 <= most)
            }
            Target::Within(most) => Some(self.measured.median() <= most),
            Target::Over(more) => Some(self.measured.median() <= idle?.median() + more),
            Target::Times(times) => Some(self.measured.median() <= idle?.median().mul_f64(times)),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let figures = |latencies: &LatencyHistogram| {
            let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
            let percentile = |percentile| ms(latencies.percentile(percentile));
            json!({
                "p50_ms": percentile(50.0), "p90_ms": percentile(90.0), "p99_ms": percentile(99.0),
                "max_ms": ms(latencies.max()), "samples": latencies.len(),
            })
        };
        json!({
            "what": self.what,
            "measured": figures(&self.measured),
            "idle": self.idle.as_ref().map(figures),
            "target": self.target.words(),
            "met": self.is_met(),
        })
    }
}

impl Target {
    fn words(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Beside(times, most) => Some(format!("p99 ≤ {times} × idle, ≤ {}", ms(most))),
            Self::Within(most) => Some(format!("p50 ≤ {}", ms(most))),
            Self::Over(more) => Some(format!("p50 ≤ idle + {}", ms(more))),
            Self::Times(times) => Some(format!("p50 ≤ {times} × native")),
        }
    }
}

/// Returns all rows in human-readable form.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "what",
        "p50",
        "p99",
        "max",
        "samples",
        "compared p50",
        "compared p99",
        "target",
        "met",
    ]);
    for row in rows {
        let measured = &row.measured;
        let idle = row.idle.as_ref();
        let of_idle =
            |percentile| idle.map_or_else(String::new, |idle| ms(idle.percentile(percentile)));
        table.add_row([
            row.what.clone(),
            ms(measured.median()),
            ms(measured.percentile(99.0)),
            ms(measured.max()),
            measured.len().to_string(),
            of_idle(50.0),
            of_idle(99.0),
            row.target.words().unwrap_or_default(),
            row.is_met()
                .map_or("", |met| if met { "yes" } else { "NO" })
                .to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Formats a duration in milliseconds.
pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    let digits = match ms {
        ..1.0 => 3,
        ..10.0 => 2,
        _ => 1,
    };
    format!("{ms:.digits$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(ms: u64) -> LatencyHistogram {
        let mut latencies = LatencyHistogram::new().unwrap();
        latencies.add(Duration::from_millis(ms));
        latencies
    }

    #[test]
    fn targets_are_met_or_not() {
        let met = |measured, target| {
            Row::new("", latencies(measured), Some(&latencies(4)), target).is_met()
        };
        let ms = Duration::from_millis;
        assert_eq!(met(11, Target::Beside(3.0, ms(20))), Some(true));
        assert_eq!(
            met(13, Target::Beside(3.0, ms(20))),
            Some(false),
            "more than three times as long"
        );
        assert_eq!(
            met(11, Target::Beside(3.0, ms(10))),
            Some(false),
            "over ten milliseconds"
        );
        assert_eq!(
            (met(5, Target::Within(ms(6))), met(7, Target::Within(ms(6)))),
            (Some(true), Some(false))
        );
        assert_eq!(
            (met(8, Target::Over(ms(5))), met(10, Target::Over(ms(5)))),
            (Some(true), Some(false))
        );
        assert_eq!(
            (met(5, Target::Times(1.5)), met(7, Target::Times(1.5))),
            (Some(true), Some(false))
        );
        assert_eq!(met(11, Target::None), None);
    }

    #[test]
    fn a_table_says_it_all() {
        let rows = [Row::new(
            "echo",
            latencies(3),
            Some(&latencies(4)),
            Target::Within(Duration::from_millis(2)),
        )];
        let text = table(&rows).to_string();
        assert!(
            ["echo", "3.00 ms", "4.00 ms", "p50 ≤ 2.00 ms", "NO"]
                .iter()
                .all(|part| text.contains(part)),
            "{text}"
        );
        assert_eq!(rows[0].json()["met"], false);
    }
}
