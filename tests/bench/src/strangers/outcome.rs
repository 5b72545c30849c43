//! The results of honest clients next to one kind of hostile client, and the table of all kinds.

use std::time::Duration;

use anyhow::Result;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;

use super::hostile::Kind;
use crate::row::ms;

/// Maximum ratio of the 99th percentile to that of the idle server.
const TIMES: f64 = 3.0;

/// The results of honest clients next to one kind of hostile client.
pub(crate) struct Outcome {
    pub(super) kind: Kind,
    pub(super) idle: LatencyHistogram,
    pub(super) beside: LatencyHistogram,
    /// Number of calls that were rejected, or whose connection ended.
    pub(super) refused: u64,
    /// Number of actions of the hostile client.
    pub(super) attacks: u64,
}

impl Outcome {
    pub(super) fn new(kind: Kind) -> Result<Self> {
        Ok(Self {
            kind,
            idle: LatencyHistogram::new()?,
            beside: LatencyHistogram::new()?,
            refused: 0,
            attacks: 0,
        })
    }

    /// Returns the ratio of the 99th percentile to that of the idle server.
    fn ratio(&self) -> f64 {
        self.beside.percentile(99.0).as_secs_f64()
            / self
                .idle
                .percentile(99.0)
                .max(Duration::from_micros(1))
                .as_secs_f64()
    }

    fn is_met(&self) -> bool {
        self.ratio() <= TIMES && self.refused == 0 && !self.beside.is_empty()
    }

    pub(crate) fn json(&self) -> Value {
        let figures = |latencies: &LatencyHistogram| {
            let ms = |percentile| latencies.percentile(percentile).as_secs_f64() * 1e3;
            json!({"p50_ms": ms(50.0), "p99_ms": ms(99.0), "samples": latencies.len()})
        };
        json!({
            "hostile": self.kind.words(),
            "attacks": self.attacks,
            "beside": figures(&self.beside),
            "idle": figures(&self.idle),
            "p99_ratio": self.ratio(),
            "refused": self.refused,
            "target": target(),
            "met": self.is_met(),
        })
    }
}

fn target() -> String {
    format!("p99 ≤ {TIMES} × idle, 0 refused")
}

/// Returns all outcomes in human-readable form.
pub(crate) fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    let header = [
        "beside a client that",
        "times",
        "p50",
        "p99",
        "calls",
        "idle p50",
        "idle p99",
        "ratio",
        "refused",
        "target",
        "met",
    ];
    table.set_header(header);
    for outcome in outcomes {
        table.add_row([
            outcome.kind.words().to_owned(),
            outcome.attacks.to_string(),
            ms(outcome.beside.median()),
            ms(outcome.beside.percentile(99.0)),
            outcome.beside.len().to_string(),
            ms(outcome.idle.median()),
            ms(outcome.idle.percentile(99.0)),
            format!("{:.1}", outcome.ratio()),
            outcome.refused.to_string(),
            target(),
            if outcome.is_met() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(8) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(idle: u64, beside: u64, refused: u64) -> Outcome {
        let mut outcome = Outcome {
            refused,
            attacks: 7,
            ..Outcome::new(Kind::Deaf).unwrap()
        };
        outcome.idle.add(Duration::from_millis(idle));
        outcome.beside.add(Duration::from_millis(beside));
        outcome
    }

    #[test]
    fn the_target_is_a_ratio_and_no_refusal() {
        assert!(outcome(4, 11, 0).is_met());
        assert!(!outcome(4, 13, 0).is_met(), "more than three times as long");
        assert!(!outcome(4, 4, 1).is_met(), "one was refused");
        assert!(
            !Outcome::new(Kind::Deaf).unwrap().is_met(),
            "nobody was served"
        );
    }

    #[test]
    fn a_table_says_it_all() {
        let outcomes = [outcome(4, 20, 2)];
        let text = table(&outcomes).to_string();
        let parts = [
            "reads no response",
            "20.0 ms",
            "4.00 ms",
            "5.0",
            "p99 ≤ 3 × idle, 0 refused",
            "NO",
        ];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(
            (&outcomes[0].json()["met"], &outcomes[0].json()["refused"]),
            (&json!(false), &json!(2))
        );
    }
}
