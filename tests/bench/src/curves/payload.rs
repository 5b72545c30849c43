//! The cost of a call with large messages.

use anyhow::Result;

use super::stand::{Growing, Stand, with_echo};
use toolbay_load::{Group, Until, Via, Work};
use toolbay_report::{Lines, Unit};

/// Number of calls before the measurement.
const WARM: u64 = 20;

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let points = stand.points(
        &[
            64,
            256,
            1 << 10,
            4 << 10,
            16 << 10,
            64 << 10,
            256 << 10,
            1 << 20,
        ],
        1 << 20,
    );
    let works: Vec<(u32, Work)> = points
        .iter()
        .map(|bytes| (*bytes, Work::echo(*bytes as usize)))
        .collect();
    let folder = stand.folder()?;
    let mut server = with_echo(&folder, Via::Stdio)?;
    let mut costs = Growing::new(&["p50", "p99", "processor time"]);
    for (bytes, work) in stand.turns(&works) {
        server.drive(&[Group::of(1, work)], Until::Calls(WARM))?;
        let driven = server.drive(&[Group::of(1, work)], Until::Time(stand.each()))?;
        costs.add(
            *bytes,
            &[
                driven.percentile_us(50.0),
                driven.percentile_us(99.0),
                driven.cpu_us(),
            ],
        );
    }
    Ok(vec![Lines {
        title: "A call, by the bytes of its message".to_owned(),
        across: "bytes there, and as many back".to_owned(),
        unit: Unit::Microseconds,
        series: costs.done(),
    }])
}
