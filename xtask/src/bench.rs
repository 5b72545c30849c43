//! `cargo xtask bench`: what the real server does, measured from outside. Nothing here passes or fails.

mod budget;
mod cancel;
mod close;
mod fairness;
mod load;
mod row;
mod stage;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::build::{self, Profile};
use crate::connection::{Connection, PATIENCE};
use crate::terminal;
use crate::workspace::Workspace;
use row::Row;
use stage::Stage;

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// How fast light calls are beside guests that burn, and how soon those are gone that must end
    Fairness(Options),
}

/// How to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure the server as it is meant to be used, not as the tests use it
    #[arg(long)]
    release: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// How often everything is measured, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// For how long light calls are measured beside each kind of burner, in each round
    #[arg(long, default_value = "4s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    beside: Duration,
}

/// `cargo xtask bench`.
pub(crate) fn run(workspace: &Workspace, bench: &Bench) -> Result<()> {
    let Bench::Fairness(options) = bench;
    let profile = if options.release { Profile::Release } else { Profile::Dev };
    let built = build::build_as(workspace, profile)?;
    let stage = Stage::set(&built)?;
    let load = load::average()?;
    let rows = measure(&stage, options)?;
    let cores = std::thread::available_parallelism().context("how many cores are there?")?;
    if options.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        let machine = json!({"cores": cores, "load_before": load, "profile": format!("{profile:?}").to_lowercase()});
        println!("{:#}", json!({"machine": machine, "rounds": options.rounds, "rows": rows}));
    } else {
        println!("{}", row::table(&rows));
        println!(
            "{cores} cores, load {load} before, {} build, {} rounds, {} beside each kind of burner in each",
            format!("{profile:?}").to_lowercase(),
            options.rounds,
            humantime::format_duration(options.beside),
        );
    }
    Ok(())
}

fn measure(stage: &Stage, options: &Options) -> Result<Vec<Row>> {
    let connection = Connection::start(&stage.server, stage.root())?;
    let mut rows = Vec::new();
    let mut measure = || -> Result<()> {
        stage::all_listed(&connection)?;
        say("light calls beside burners");
        rows.extend(fairness::measure(&connection, options.rounds, options.beside)?);
        say("budgets");
        rows.extend(budget::measure(&connection, options.rounds)?);
        say("cancellation");
        rows.extend(cancel::measure(&connection, options.rounds)?);
        Ok(())
    };
    if let Err(error) = measure() {
        return Err(error.context(connection.last_words()));
    }
    if let Some(fault) = connection.books().faults().first.first() {
        anyhow::bail!("the server did what it should not: {fault}");
    }
    connection.end(PATIENCE)?;
    say("closed connections");
    rows.extend(close::measure(stage, options.rounds)?);
    Ok(rows)
}

/// What is being measured. Standard output is for what came of it.
fn say(what: &str) {
    eprintln!("{}", terminal::stderr().dim(format!("measuring {what} …")));
}
