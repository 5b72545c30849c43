//! The throughput of many clients over HTTP.

use anyhow::Result;

use super::stand::{Growing, Stand, drive, with_echo};
use toolbay_load::{Driven, Via, Work};
use toolbay_report::{Lines, Unit};

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let points = stand.points(&[1, 2, 5, 10, 20, 50, 100, 200, 500], 500);
    let folder = stand.folder()?;
    let work = Work::echo(64);
    let names = ["with sessions", "without sessions"];
    let [mut rates, mut tails, mut costs] = [
        Growing::new(&names),
        Growing::new(&names),
        Growing::new(&names),
    ];
    let mut server = with_echo(&folder, Via::Session)?;
    for clients in stand.turns(&points) {
        let mut measure = |via| {
            server.change(via, 1)?;
            drive(&mut server, *clients, &work, stand.each())
        };
        let both = [measure(Via::Session)?, measure(Via::Stateless)?];
        rates.add(*clients, &both.each_ref().map(Driven::rate));
        tails.add(
            *clients,
            &both.each_ref().map(|driven| driven.percentile_us(99.0)),
        );
        costs.add(*clients, &both.each_ref().map(Driven::cpu_us));
    }
    let across = "clients over HTTP, each with a connection and an open call".to_owned();
    let chart = |title: &str, unit, growing: Growing| Lines {
        title: title.to_owned(),
        across: across.clone(),
        unit,
        series: growing.done(),
    };
    Ok(vec![
        chart("Calls a second, by the clients", Unit::PerSecond, rates),
        chart(
            "The 99th percentile, by the clients",
            Unit::Microseconds,
            tails,
        ),
        chart(
            "Processor time of a call, by the clients",
            Unit::Microseconds,
            costs,
        ),
    ])
}
