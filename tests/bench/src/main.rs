//! `cargo xtask bench`: measures the real server from outside. Nothing here passes or fails.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to the person who runs it"
)]

mod budget;
mod cancel;
mod close;
mod curves;
mod fairness;
mod lock;
mod native;
mod peers;
mod plugin;
mod requests;
mod row;
mod serving;
mod stage;
mod strangers;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{eprintln, println};
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum as _};
use serde_json::{Value, json};
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::workspace::CargoWorkspace;
use toolbay_testkit::{
    DEADLINE, ProgramLog, SharedConnection, ToolbayCommand, UnclaimedPolicy, process_usage,
    revision, terminal,
};

use self::row::Row;
use self::stage::Stage;

/// Benchmarks that the same command starts as separate programs.
const ELSEWHERE: &str = "\
Measured inside one process:
  metering  What it costs to count what guests compute
  parts     Decoding, checking, calling, listing, reloading, with criterion";

/// Measure the real server from outside.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    version,
    arg_required_else_help = true
)]
#[command(args_conflicts_with_subcommands = true, after_help = ELSEWHERE)]
struct Cli {
    /// Compare Toolbay with servers on the official SDKs, in five minutes: the same as `peers
    /// --quick`
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    bench: Option<Bench>,
}

/// What to measure.
#[derive(Subcommand)]
enum Bench {
    /// The latency of light calls beside guests that use all CPU time, and how soon cancelled
    /// guests end
    Fairness(Options),
    /// The latency of honest HTTP clients beside one hostile client of each kind, and whether any
    /// is refused
    Strangers(Beside),
    /// What an HTTP request of a guest costs, compared with the same request of a native client
    Requests(Often),
    /// Toolbay beside servers on the official SDKs: the same tools, the same callers, in turn
    Peers(peers::Options),
    /// How costs grow: with tools, open calls, bytes, clients, plugins and changed files
    Curves(curves::Options),
    /// What a plugin costs: until it is offered the first time and later, and for each call
    Plugin(OfPlugin),
    /// What the lock file costs: calls and changes of plugins with `lock.mode` `hold` and `off`, in turn
    Lock(OfLock),
    /// Serve the requests that `requests` measures, until standard input ends
    #[command(hide = true)]
    Site,
}

/// What to measure, and how to print it.
#[derive(Args)]
struct Subject {
    /// Measure a release build instead of the tests' build
    #[arg(long)]
    release: bool,
    /// Measure this server; build none
    #[arg(long, value_name = "PATH", conflicts_with = "release")]
    server: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Subject {
    fn profile(&self) -> BuildProfile {
        if self.release {
            BuildProfile::Release
        } else {
            BuildProfile::Dev
        }
    }

    /// Returns the measured server.
    fn program(&self, builder: &mut WorkspaceBuilder<'_>) -> Result<PathBuf> {
        match &self.server {
            Some(server) => std::fs::canonicalize(server)
                .with_context(|| format!("no server {}", server.display())),
            None => builder.build_server(self.profile()),
        }
    }

    /// Describes the measured build.
    fn build(&self) -> String {
        self.server.as_ref().map_or_else(
            || self.profile().to_string(),
            |server| server.display().to_string(),
        )
    }

    /// Prints the results: as a table with a line about the method, or as JSON.
    fn print(
        &self,
        load: f64,
        rounds: u32,
        rows: &[Value],
        table: &dyn Display,
        how: &str,
    ) -> Result<()> {
        let cores = std::thread::available_parallelism().context("how many cores are there?")?;
        let build = self.build();
        if self.json {
            let machine = json!({"cores": cores, "load_before": load, "profile": build});
            println!(
                "{:#}",
                json!({"machine": machine, "rounds": rounds, "rows": rows})
            );
        } else {
            println!("{table}");
            println!(
                "{cores} cores, load {load} before, {build} build, {rounds} rounds, {how} in each"
            );
        }
        Ok(())
    }
}

/// How to measure.
#[derive(Args)]
struct Options {
    #[command(flatten)]
    subject: Subject,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How long to measure light calls beside each kind of busy guest, in each round
    #[arg(long, default_value = "4s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    beside: Duration,
}

/// How to measure requests.
#[derive(Args)]
struct Often {
    #[command(flatten)]
    subject: Subject,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// Which plugins to measure, and how.
#[derive(Args)]
struct OfPlugin {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    what: plugin::Options,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// How to measure the lock file.
#[derive(Args)]
struct OfLock {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    what: lock::Options,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

/// How to measure honest clients beside hostile ones.
#[derive(Args)]
struct Beside {
    #[command(flatten)]
    subject: Subject,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// How long to measure honest clients alone, and beside each kind of hostile client, in each
    /// round
    #[arg(long, default_value = "5s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    time: Duration,
    /// Measure beside these kinds of hostile clients only
    #[arg(long, value_name = "KIND", value_enum)]
    only: Vec<strangers::Kind>,
}

fn main() -> ExitCode {
    let bench = Cli::parse()
        .bench
        .unwrap_or_else(|| Bench::Peers(peers::Options::quick()));
    terminal::exit_code(match bench {
        Bench::Fairness(options) => fairness(&options),
        Bench::Strangers(options) => beside_strangers(&options),
        Bench::Requests(options) => requests(&options),
        Bench::Peers(options) => peers::run(&options),
        Bench::Curves(options) => curves::run(&options),
        Bench::Plugin(options) => of_plugin(&options),
        Bench::Lock(options) => of_lock(&options),
        Bench::Site => requests::serve_site(),
    })
}

fn fairness(options: &Options) -> Result<()> {
    let subject = &options.subject;
    let server = subject.server.as_deref();
    let stage = Stage::set(
        &WorkspaceBuilder::new(&CargoWorkspace::load()?)
            .build_all_with_server(server, subject.profile())?,
    )?;
    let load = process_usage::load_average()?;
    let rows = measure(&stage, options)?;
    let how = format!(
        "{} beside each kind of burner",
        humantime::format_duration(options.beside)
    );
    let json: Vec<_> = rows.iter().map(Row::json).collect();
    subject.print(load, options.rounds, &json, &row::table(&rows), &how)
}

fn requests(options: &Often) -> Result<()> {
    let subject = &options.subject;
    let workspace = CargoWorkspace::load()?;
    let mut builder = WorkspaceBuilder::new(&workspace);
    let guests = builder.build_guest(requests::GUEST)?;
    let server = subject.program(&mut builder)?;
    let client = native::build(&workspace)?.join(native::CLIENT);
    let load = process_usage::load_average()?;
    say("requests of a native client and of guests");
    let rows = requests::measure(&server, &guests, &client, options.rounds)?;
    let json: Vec<_> = rows.iter().map(Row::json).collect();
    subject.print(
        load,
        options.rounds,
        &json,
        &row::table(&rows),
        "1,000 of each",
    )
}

fn of_plugin(options: &OfPlugin) -> Result<()> {
    let subject = &options.subject;
    let server = subject.program(&mut WorkspaceBuilder::new(&CargoWorkspace::load()?))?;
    let load = process_usage::load_average()?;
    let all = plugin::measure(&server, &options.what, options.rounds)?;
    let json: Vec<_> = all.iter().map(plugin::Costs::json).collect();
    let how = "a new server twice and 51 calls, medians,";
    subject.print(load, options.rounds, &json, &plugin::table(&all), how)
}

fn of_lock(options: &OfLock) -> Result<()> {
    let subject = &options.subject;
    let server = subject.program(&mut WorkspaceBuilder::new(&CargoWorkspace::load()?))?;
    let load = process_usage::load_average()?;
    say("calls and changed plugins with and without a lock file");
    let rows = lock::measure(&server, &options.what, options.rounds)?;
    let json: Vec<_> = rows.iter().map(Row::json).collect();
    let how = options.what.words();
    subject.print(load, options.rounds, &json, &row::table(&rows), &how)
}

fn beside_strangers(options: &Beside) -> Result<()> {
    let subject = &options.subject;
    let server = subject.program(&mut WorkspaceBuilder::new(&CargoWorkspace::load()?))?;
    let load = process_usage::load_average()?;
    let kinds = if options.only.is_empty() {
        strangers::Kind::value_variants()
    } else {
        &options.only
    };
    let outcomes = strangers::measure(&server, kinds, options.rounds, options.time, |what| {
        say(&format!("honest clients beside one that {what}"));
    })?;
    let how = format!(
        "{} beside each kind",
        humantime::format_duration(options.time)
    );
    let json: Vec<_> = outcomes.iter().map(strangers::Outcome::json).collect();
    subject.print(
        load,
        options.rounds,
        &json,
        &strangers::table(&outcomes),
        &how,
    )
}

fn measure(stage: &Stage, options: &Options) -> Result<Vec<Row>> {
    let log = ProgramLog::default();
    let (command, _) = ToolbayCommand::new(&stage.folder)
        .args(["serve"])
        .into_parts();
    let connection = SharedConnection::start(command, UnclaimedPolicy::Check, log.line_handler())?;
    let mut rows = Vec::new();
    let mut measure = || -> Result<()> {
        connection.initialize(revision::NEWEST_SESSION_REVISION)?;
        stage::all_listed(&connection)?;
        say("light calls beside burners");
        rows.extend(fairness::measure(
            &connection,
            options.rounds,
            options.beside,
        )?);
        say("budgets");
        rows.extend(budget::measure(&connection, options.rounds)?);
        say("cancellation");
        rows.extend(cancel::measure(&connection, options.rounds)?);
        Ok(())
    };
    if let Err(error) = measure() {
        return Err(error.context(format!("the server's log ends:\n{}", log.tail(30))));
    }
    if let Some(fault) = connection.ledger().faults().first.first() {
        anyhow::bail!("the server did what it should not: {fault}");
    }
    connection.stop(DEADLINE)?;
    say("closed connections");
    rows.extend(close::measure(stage, options.rounds)?);
    Ok(rows)
}

/// Prints the current measurement to standard error. Standard output is for results.
fn say(what: &str) {
    eprintln!("{}", terminal::dim(format!("measuring {what} …")));
}
