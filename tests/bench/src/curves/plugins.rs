//! The start time and the memory of a server with many plugins.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use toolbay_testkit::{TestFolder, TinyComponent};

use super::stand::{Growing, Stand, ms, start};
use crate::serving;
use toolbay_load::Via;
use toolbay_load::pause;
use toolbay_report::{Lines, Unit};

/// Maximum time of a first start, in which everything is compiled.
const PATIENCE: Duration = Duration::from_mins(10);

/// Idle time before the memory is read.
const REST: Duration = Duration::from_millis(200);

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let points = stand.points(&[1, 10, 100, 1_000, 5_000], 100);
    let mut starts = Growing::new(&["first start", "further start", "handshake"]);
    let mut memory = Growing::new(&["resident"]);
    for plugins in stand.turns(&points) {
        // The cache of a server is in its folder, so in a new folder nothing is compiled yet.
        let folder = folder(stand, *plugins)?;
        let (_, first, _) = started(&folder, *plugins)?;
        let (handshake, further, resident) = started(&folder, *plugins)?;
        starts.add(*plugins, &[ms(first), ms(further), ms(handshake)]);
        memory.add(*plugins, &[resident]);
    }
    let across = "plugins, each a component of its own".to_owned();
    Ok(vec![
        Lines {
            title: "From the start until all tools are listed, by the number of plugins".to_owned(),
            across: across.clone(),
            unit: Unit::Milliseconds,
            series: starts.done(),
        },
        Lines {
            title: "Resident memory of an idle server, by the number of plugins".to_owned(),
            across,
            unit: Unit::Mebibytes,
            series: memory.done(),
        },
    ])
}

/// Returns the time until the response to `initialize`, the time until all plugins are listed, and
/// the memory then, in MiB.
fn started(folder: &TestFolder, plugins: u32) -> Result<(Duration, Duration, f64)> {
    let mut server = start(folder, Via::Stdio)?;
    let handshake = server.started.elapsed();
    server.until_listed_within(PATIENCE, |names| names.len() == plugins as usize)?;
    let all = server.started.elapsed();
    pause(REST);
    #[expect(clippy::cast_precision_loss, reason = "no server takes so much memory")]
    let resident = server.memory()?.resident as f64 / 1024.0;
    Ok((handshake, all, resident))
}

fn folder(stand: &Stand, plugins: u32) -> Result<TestFolder> {
    let folder = serving::folder(&stand.server)?;
    for number in 0..plugins {
        let tool = format!("tool_{number}");
        fs::write(
            folder.plugin_path(&format!("plugin-{number}.wasm")),
            TinyComponent::new(&[&tool]).build(),
        )?;
    }
    Ok(folder)
}
