//! Recorded and replayed numbers, for people and for programs.

use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Value, json};
use toolbay_recording::FigurePair;

/// Formats the recorded and the replayed number, and the difference.
pub(super) fn format_figure(figure: FigurePair, format_value: fn(u64) -> String) -> String {
    let FigurePair { recorded, replayed } = figure;
    if recorded == replayed {
        return format_value(recorded);
    }
    let change = match recorded {
        0 => String::new(),
        #[expect(
            clippy::cast_precision_loss,
            reason = "it is shown with one digit after the point"
        )]
        _ => format!(
            " ({:+.1} %)",
            (replayed as f64 / recorded as f64 - 1.0) * 100.0
        ),
    };
    format!(
        "{} → {}{change}",
        format_value(recorded),
        format_value(replayed)
    )
}

pub(super) fn format_bytes(size: u64) -> String {
    ByteSize::b(size).display().iec().to_string()
}

pub(super) fn format_milliseconds(nanoseconds: u64) -> String {
    format!(
        "{:.1} ms",
        Duration::from_nanos(nanoseconds).as_secs_f64() * 1000.0
    )
}

pub(super) fn figure_json(figure: FigurePair) -> Value {
    json!({"recorded": figure.recorded, "replayed": figure.replayed})
}

pub(super) fn milliseconds_json(figure: FigurePair) -> Value {
    let [recorded, replayed] = [figure.recorded, figure.replayed].map(|nanoseconds| {
        (Duration::from_nanos(nanoseconds).as_secs_f64() * 10_000.0).round() / 10.0
    });
    json!({"recorded": recorded, "replayed": replayed})
}

pub(super) fn add_figures(one: FigurePair, other: FigurePair) -> FigurePair {
    FigurePair {
        recorded: one.recorded.saturating_add(other.recorded),
        replayed: one.replayed.saturating_add(other.replayed),
    }
}

pub(super) fn max_figures(one: FigurePair, other: FigurePair) -> FigurePair {
    FigurePair {
        recorded: one.recorded.max(other.recorded),
        replayed: one.replayed.max(other.replayed),
    }
}
