//! The throughput of one client with many calls in flight.

use anyhow::Result;

use super::stand::{Growing, Stand, drive, with_echo};
use toolbay_load::{Via, Work};
use toolbay_report::{Lines, Unit};

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let points = stand.points(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000], 1_000);
    let folder = stand.folder()?;
    let work = Work::echo(64);
    let mut server = with_echo(&folder, Via::Stdio)?;
    let mut rates = Growing::new(&["calls"]);
    let mut costs = Growing::new(&["p50", "p99", "processor time"]);
    for callers in stand.turns(&points) {
        let driven = drive(&mut server, *callers, &work, stand.each())?;
        rates.add(*callers, &[driven.rate()]);
        costs.add(
            *callers,
            &[
                driven.percentile_us(50.0),
                driven.percentile_us(99.0),
                driven.cpu_us(),
            ],
        );
    }
    let across = "calls of one client that are open, over standard input and output".to_owned();
    let chart = |title: &str, unit, growing: Growing| Lines {
        title: title.to_owned(),
        across: across.clone(),
        unit,
        series: growing.done(),
    };
    Ok(vec![
        chart(
            "Calls a second, by the calls that are open",
            Unit::PerSecond,
            rates,
        ),
        chart(
            "A call, by the calls that are open",
            Unit::Microseconds,
            costs,
        ),
    ])
}
