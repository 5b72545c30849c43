//! The cost of a call and of a list with many tools.

use std::fs;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use toolbay_testkit::{TestFolder, TinyComponent};

use super::stand::{Growing, Stand, drive, ms, start};
use toolbay_load::{Via, Work};
use toolbay_report::{Lines, Unit};

/// Number of tools of the called plugin.
const OWN: u32 = 2;

/// Number of tools of each other plugin.
const EACH: u32 = 100;

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let points = stand.points(&[OWN, 10, 100, 1_000, 10_000], 10_000);
    let folders = points
        .iter()
        .map(|tools| Ok((*tools, folder(stand, *tools)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut calls = Growing::new(&["p50", "p99", "processor time"]);
    let mut lists = Growing::new(&["all pages"]);
    let work = Work::echo(64);
    for (tools, folder) in stand.turns(&folders) {
        let mut server = start(folder, Via::Stdio)?;
        server.until_listed(|names| names.len() == *tools as usize)?;
        let driven = drive(&mut server, 1, &work, stand.each())?;
        calls.add(
            *tools,
            &[
                driven.percentile_us(50.0),
                driven.percentile_us(99.0),
                driven.cpu_us(),
            ],
        );
        let began = Instant::now();
        let mut params = json!({});
        loop {
            let page = server.ask("tools/list", params)?;
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        lists.add(*tools, &[ms(began.elapsed())]);
    }
    let across = "tools that are served".to_owned();
    let chart = |title: &str, unit, growing: Growing| Lines {
        title: title.to_owned(),
        across: across.clone(),
        unit,
        series: growing.done(),
    };
    Ok(vec![
        chart("A call, by the number of tools", Unit::Microseconds, calls),
        chart(
            "The whole list, by the number of tools",
            Unit::Milliseconds,
            lists,
        ),
    ])
}

/// Creates a folder with this number of tools: those of the called plugin, and of others that are
/// not called.
fn folder(stand: &Stand, tools: u32) -> Result<TestFolder> {
    let folder = stand.folder()?;
    let mut left = tools.saturating_sub(OWN);
    while left > 0 {
        let count = left.min(EACH);
        let names: Vec<String> = (0..count)
            .map(|number| format!("tool_{}", left - number))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        fs::write(
            folder.plugin_path(&format!("others-{left}.wasm")),
            TinyComponent::new(&names).build(),
        )?;
        left -= count;
    }
    Ok(folder)
}
