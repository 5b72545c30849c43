//! `cargo xtask fuzz clients`: clients that attack a real server at random.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to the person who runs it"
)]

mod attack;
mod honest;
mod json;
mod message;
mod pipe;
mod plugins;
mod request;
mod session;
mod text;
mod verdict;
mod watch;
mod web;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context, Result};
use clap::Parser;
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::attack::Ends;
use self::pipe::Pipe;
use self::session::{Talk, Visit};
use self::web::Web;

/// Number of clients between two checks of the server's resources.
const ROUND: u64 = 32;

/// Number of clients after which a new server is started, alternating between HTTP and standard
/// input and output.
const STAGE: u64 = 256;

/// Run clients that attack the server in random ways, several at once. The server may not exceed
/// the memory that its limits allow, must answer honest clients meanwhile, must say nothing of its
/// inside, and must be afterwards what it was before.
#[derive(Parser)]
#[command(
    name = "cargo xtask fuzz clients",
    bin_name = "cargo xtask fuzz clients",
    version
)]
struct Options {
    /// For how long
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    time: Duration,
    /// Seed of the first client; each further one has the next number
    #[arg(long)]
    seed: Option<u64>,
    /// How many clients at most
    #[arg(long)]
    clients: Option<u64>,
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
    let last = options
        .clients
        .map_or(u64::MAX, |most| first.saturating_add(most));
    println!("seed {first}");
    let began = Instant::now();
    let mut ends: BTreeMap<&str, Ends> = BTreeMap::new();
    let mut seed = first;
    while seed < last && began.elapsed() < options.time {
        // The stages are aligned, so that a seed does not depend on the start of the run.
        let stage = seed..last.min((seed / STAGE + 1) * STAGE);
        let is_web = (seed / STAGE).is_multiple_of(2);
        let ends = ends
            .entry(if is_web {
                "HTTP"
            } else {
                "standard input and output"
            })
            .or_default();
        let more = || began.elapsed() < options.time;
        seed = if is_web {
            over_http(&server, stage, ends, more)
        } else {
            over_pipe(&server, stage, ends, more)
        }?;
    }
    println!(
        "{} clients in {} s",
        seed - first,
        began.elapsed().as_secs()
    );
    for (how, ends) in ends {
        let ends: Vec<String> = ends
            .iter()
            .map(|(end, count)| format!("{end} {count}"))
            .collect();
        println!("{how}: {}", ends.join(", "));
    }
    Ok(())
}

/// Runs the clients of these seeds against a server. Returns the seed after the last.
fn over_http(
    server: &Path,
    seeds: Range<u64>,
    ends: &mut Ends,
    more: impl Fn() -> bool,
) -> Result<u64> {
    let mut web = Web::set(server)?;
    let first = seeds.start;
    let mut next = seeds.start;
    while next < seeds.end && (next == first || more()) {
        let round = next..seeds.end.min((next / ROUND + 1) * ROUND);
        let visits: Vec<Visit> = round.clone().map(Visit::new).collect();
        add(ends, web.round(&visits)?);
        next = round.end;
    }
    let noted = web
        .end()
        .with_context(|| format!("after the clients of the seeds {first} to {}", next - 1))?;
    println!(
        "{}",
        terminal::dim(format!(
            "seeds {first} to {}, over HTTP: the server {noted}",
            next - 1
        ))
    );
    Ok(next)
}

/// Like [`over_http`], for standard input and output.
fn over_pipe(
    server: &Path,
    seeds: Range<u64>,
    ends: &mut Ends,
    more: impl Fn() -> bool,
) -> Result<u64> {
    let mut pipe = Pipe::set(server)?;
    let first = seeds.start;
    let mut next = seeds.start;
    while next < seeds.end && (next == first || more()) {
        let round = next..seeds.end.min((next / ROUND + 1) * ROUND);
        let talks: Vec<Talk> = round.clone().map(Talk::new).collect();
        add(ends, pipe.round(&talks)?);
        next = round.end;
    }
    let noted = pipe
        .end()
        .with_context(|| format!("after the clients of the seeds {first} to {}", next - 1))?;
    println!(
        "{}",
        terminal::dim(format!(
            "seeds {first} to {}, over a pipe: the server {noted}",
            next - 1
        ))
    );
    Ok(next)
}

fn add(all: &mut Ends, ends: Ends) {
    for (end, count) in ends {
        *all.entry(end).or_default() += count;
    }
}
