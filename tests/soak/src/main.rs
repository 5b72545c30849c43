//! `cargo xtask soak`: calls for a long time while plugins misbehave and files change.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to the person who runs it"
)]

mod caller;
mod churn;
mod counts;
mod editions;
mod files;
mod goal;
mod log;
mod mix;
mod sample;
mod slot;
mod soak;
mod source;
mod stage;
mod verdict;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstream::{eprintln, println};
use anyhow::{Result, ensure};
use clap::Parser;
use toolbay_testkit::build::{BuildOutput, BuildProfile, WorkspaceBuilder};
use toolbay_testkit::workspace::CargoWorkspace;
use toolbay_testkit::{
    DEADLINE, ObservableValue, SharedConnection, StreamEvent, ToolbayCommand, UnclaimedPolicy,
    revision, terminal,
};

use self::caller::Caller;
use self::churn::Churner;
use self::counts::Counts;
use self::goal::Goal;
use self::log::Log;
use self::soak::Soak;
use self::stage::Stage;
use self::verdict::Verdict;
use self::watch::Watch;

/// Number of callers, each with requests in flight.
const CALLERS: u64 = 6;

/// Requests in flight of one caller. Except in bursts, all callers together have slightly fewer
/// than the server runs concurrently.
const WINDOW: usize = 4;

/// Call without end while plugins misbehave and their files change, and see that nothing is lost
/// and nothing grows.
#[derive(Parser)]
#[command(name = "cargo xtask soak", bin_name = "cargo xtask soak", version)]
struct Options {
    /// Minimum number of calls
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// Minimum number of changes to plugin files
    #[arg(long, default_value_t = 10_000)]
    reloads: u64,
    /// When to stop, whatever has been reached by then
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    time: Duration,
    /// The build of the server: dev or release
    #[arg(long, default_value_t = BuildProfile::Release)]
    profile: BuildProfile,
    /// Test this server; build none
    #[arg(long, value_name = "PATH", conflicts_with = "profile")]
    server: Option<PathBuf>,
    /// Seed of the random numbers, to repeat a run
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{} {error:#}", terminal::red("error:"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the soak test. Returns whether all checks passed.
fn run(options: &Options) -> Result<bool> {
    let built = WorkspaceBuilder::new(&CargoWorkspace::load()?)
        .build_all_with_server(options.server.as_deref(), options.profile)?;
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    let goal = Goal {
        calls: options.calls,
        reloads: options.reloads,
        time: options.time,
        seed,
    };
    let verdict = soak(&built, goal)?;
    println!("\n{verdict}");
    Ok(verdict.is_good())
}

fn soak(built: &BuildOutput, goal: Goal) -> Result<Verdict> {
    let stage = Stage::set(built)?;
    let log = Arc::new(ObservableValue::new(Log::default()));
    let taken = Arc::clone(&log);
    let (command, _) = ToolbayCommand::new(&stage.folder)
        .args(["serve"])
        .into_parts();
    let connection = SharedConnection::start(command, UnclaimedPolicy::Check, move |heard| {
        if let StreamEvent::Line(line, _) = heard {
            taken.update(|log| log.take(&String::from_utf8_lossy(line)));
        }
    })?;
    let last_words = || {
        format!(
            "the server's log ends:\n{}",
            log.read(|log| log.tail().join("\n"))
        )
    };
    let soak = Soak {
        connection: &connection,
        log: &log,
        slots: &stage.slots,
        counts: Counts::new()?,
        listed: ObservableValue::default(),
        over: ObservableValue::new(false),
        quiet: AtomicBool::new(false),
    };
    let hello = connection
        .initialize(revision::NEWEST_SESSION_REVISION)
        .map(drop);
    let mut verdict = hello
        .and_then(|()| all_listed(&soak, &stage))
        .and_then(|()| work(&soak, &stage, goal))
        .map_err(|error| error.context(last_words()))?;
    verdict.ended(connection.stop(DEADLINE)?);
    Ok(verdict)
}

/// Waits until all plugins in the folder are loaded.
fn all_listed(soak: &Soak<'_>, stage: &Stage) -> Result<()> {
    let wanted = stage.tools();
    let listed = |tools: &[String]| wanted.iter().all(|tool| tools.contains(tool));
    soak.connection.wait_until_listed(DEADLINE, listed)?;
    soak.list(&soak.connection.open_mailbox())
}

/// Calls tools and changes files until the goal is reached, and checks the results.
fn work(soak: &Soak<'_>, stage: &Stage, goal: Goal) -> Result<Verdict> {
    let mut watch = Watch::begin(soak, goal)?;
    let outcome = std::thread::scope(|scope| {
        let list = scope.spawn(|| soak.end_with(&soak.keep_list()));
        let mut threads = Vec::new();
        for n in 0..CALLERS {
            threads.push(
                scope.spawn(move || soak.end_with(&Caller::new(soak, WINDOW, goal.seed + n).run())),
            );
        }
        for (slot, n) in stage.slots.iter().zip(100..) {
            let churner = Churner::new(soak, slot, stage.source(slot), &stage.files, goal.seed + n);
            threads.push(scope.spawn(move || soak.end_with(&churner.run())));
        }
        let watched = soak.end_with(&watch.until_done());
        soak.over.update(|over| *over = true);
        // A panic has already been printed. The thread counts as failed.
        let done = |thread: std::thread::ScopedJoinHandle<'_, bool>| thread.join().unwrap_or(false);
        let worked = threads
            .into_iter()
            .map(done)
            .fold(watched, |good, other| good && other);
        soak.quiet.store(true, Ordering::SeqCst);
        done(list) && worked
    });
    ensure!(
        outcome || soak.connection.ledger().faults().count > 0,
        "a thread of the soak panicked"
    );
    watch.end(stage)
}
