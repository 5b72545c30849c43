//! `cargo xtask fuzz hostcalls`: guests that make random host calls, each in the folder of a real
//! server.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to the person who runs it"
)]

mod grammar;
mod guest;
mod site;
mod stage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context, Result};
use clap::Parser;
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::guest::Guest;
use self::stage::Stage;

/// Number of guests after which a new server is started.
const GUESTS: u64 = 200;

/// Run guests that call the host in a random order with random arguments. The server may not exceed
/// the memory of a call, must answer other calls meanwhile, and must be afterwards what it was
/// before.
#[derive(Parser)]
#[command(
    name = "cargo xtask fuzz hostcalls",
    bin_name = "cargo xtask fuzz hostcalls",
    version
)]
struct Options {
    /// For how long
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    time: Duration,
    /// Seed of the first guest; each further one has the next number
    #[arg(long)]
    seed: Option<u64>,
    /// How many guests at most
    #[arg(long)]
    guests: Option<u64>,
    /// The build of the server: dev or release
    #[arg(long, default_value_t = BuildProfile::Release)]
    profile: BuildProfile,
    /// Test this server; build none
    #[arg(long, value_name = "PATH", conflicts_with = "profile")]
    server: Option<PathBuf>,
}

fn main() -> ExitCode {
    terminal::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<()> {
    let server = match &options.server {
        Some(server) => server.clone(),
        None => WorkspaceBuilder::new(&CargoWorkspace::load()?).build_server(options.profile)?,
    };
    // A short seed is easy to type.
    let first = options.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
    println!("seed {first}");
    let began = Instant::now();
    let port = site::start().context("failed to start the server that guests call")?;
    let (mut ends, mut number): (BTreeMap<String, u64>, u64) = (BTreeMap::new(), 0);
    let more = |number: u64| {
        began.elapsed() < options.time && options.guests.is_none_or(|most| number < most)
    };
    while more(number) {
        let mut stage = Stage::set(&server, port)?;
        loop {
            let seed = first.wrapping_add(number);
            let guest = Guest::new(seed, port);
            let end = stage.run(&guest, seed.is_multiple_of(2)).with_context(|| {
                format!("the guest of seed {seed} (repeat it with --seed {seed} --guests 1) does this:\n{}", guest.code)
            })?;
            *ends.entry(end).or_default() += 1;
            number += 1;
            if !more(number) || number.is_multiple_of(GUESTS) {
                break;
            }
        }
        let pings = stage.end()?;
        println!(
            "{number} guests; pings: p50 {:?}, p99 {:?}, {} in all",
            pings.median(),
            pings.percentile(99.0),
            pings.len()
        );
    }
    let ends: Vec<String> = ends
        .iter()
        .map(|(end, count)| format!("{end} {count}"))
        .collect();
    println!(
        "{number} guests in {} s: {}",
        began.elapsed().as_secs(),
        ends.join(", ")
    );
    Ok(())
}
