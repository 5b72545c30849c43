//! `cargo xtask soak`: calls without end, plugins that misbehave, and files that change under all of it.

mod caller;
mod churn;
mod counts;
mod editions;
mod files;
mod mix;
mod slot;
mod stage;
mod verdict;
mod watch;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::build::{self, Built, Profile};
use crate::connection::{Connection, Mailbox, PATIENCE};
use crate::signal::Signal;
use crate::workspace::Workspace;
use caller::Caller;
use churn::Churner;
use counts::Counts;
use slot::Slot;
use stage::Stage;
use verdict::Verdict;
use watch::Watch;

/// What the sample plugin that comes and goes answers, whichever of its files is there.
const SLUG: &str = "hello-toolbay";

/// Callers, each with requests in flight.
const CALLERS: u64 = 6;

/// Requests in flight of one caller: together somewhat fewer than run at once, but for bursts.
const WINDOW: usize = 4;

/// How often it is looked whether the list of tools has changed, or all is over.
const LOOK: Duration = Duration::from_millis(100);

/// How long to soak.
#[derive(Args)]
pub(crate) struct Options {
    /// Calls to make at least
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// Changes of plugin files to make at least
    #[arg(long, default_value_t = 10_000)]
    reloads: u64,
    /// When to stop, whatever has been done by then
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    time: Duration,
    /// The server's build
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
    /// What chance begins with, to see the same again
    #[arg(long)]
    seed: Option<u64>,
}

/// How much there is to do.
#[derive(Clone, Copy)]
struct Goal {
    calls: u64,
    reloads: u64,
    time: Duration,
    seed: u64,
}

/// What all threads of a soak share.
struct Soak<'a> {
    connection: &'a Connection,
    slots: &'a [Slot],
    counts: Counts,
    /// The tools that a client knows of which lists them when it is told that they changed, and at no other time.
    listed: Signal<BTreeSet<String>>,
    over: Signal<bool>,
    /// Nobody waits for a list of tools any more.
    quiet: AtomicBool,
}

/// `cargo xtask soak`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let built = build::build_as(workspace, options.profile)?;
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    let goal = Goal { calls: options.calls, reloads: options.reloads, time: options.time, seed };
    let verdict = soak(&built, goal)?;
    println!("\n{verdict}");
    Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A soak of some seconds, to see that it works.
pub(crate) fn rehearse(built: &Built) -> Result<()> {
    let verdict = soak(built, Goal { calls: 500, reloads: 20, time: Duration::from_mins(1), seed: 1 })?;
    println!("\n{verdict}");
    ensure!(verdict.is_good(), "the soak did not go as it should");
    Ok(())
}

fn soak(built: &Built, goal: Goal) -> Result<Verdict> {
    let stage = Stage::set(built)?;
    let connection = Connection::start(&built.server, stage.root())?;
    let soak = Soak {
        connection: &connection,
        slots: &stage.slots,
        counts: Counts::new()?,
        listed: Signal::default(),
        over: Signal::new(false),
        quiet: AtomicBool::new(false),
    };
    let result = soak.all_listed(&stage).and_then(|()| soak.run(&stage, goal));
    let mut verdict = match result {
        Ok(verdict) => verdict,
        Err(error) => return Err(error.context(connection.last_words())),
    };
    let ended = connection.end(PATIENCE)?;
    verdict.ended(ended);
    Ok(verdict)
}

impl<'a> Soak<'a> {
    /// Waits until everything that is in the folder has been loaded.
    fn all_listed(&self, stage: &Stage) -> Result<()> {
        let (mailbox, wanted) = (self.connection.mailbox(), stage.tools());
        loop {
            let seen = self.connection.listings().read(|times| *times);
            self.list(&mailbox)?;
            let missing = self.listed.read(|tools| wanted.iter().find(|tool| !tools.contains(*tool)).cloned());
            let Some(missing) = missing else { return Ok(()) };
            let told = self.connection.listings().wait_until(PATIENCE, |times| *times > seen);
            ensure!(told, "the tool {missing} was never offered");
        }
    }

    fn run(&'a self, stage: &'a Stage, goal: Goal) -> Result<Verdict> {
        let mut watch = Watch::begin(self, goal)?;
        let outcome = std::thread::scope(|scope| {
            let list = scope.spawn(|| self.end_with(&self.keep_list()));
            let mut threads = Vec::new();
            for n in 0..CALLERS {
                threads.push(scope.spawn(move || self.end_with(&Caller::new(self, WINDOW, goal.seed + n).run())));
            }
            for (slot, n) in stage.slots.iter().zip(100..) {
                let churner = Churner::new(self, slot, stage.source(slot), &stage.files, goal.seed + n);
                threads.push(scope.spawn(move || self.end_with(&churner.run())));
            }
            let watched = self.end_with(&watch.until_done());
            self.over.update(|over| *over = true);
            // A panic has been printed; what it was about is not done.
            let done = |thread: std::thread::ScopedJoinHandle<'_, bool>| thread.join().unwrap_or(false);
            let worked = threads.into_iter().map(done).fold(watched, |good, other| good && other);
            self.quiet.store(true, Ordering::SeqCst);
            done(list) && worked
        });
        ensure!(outcome || self.connection.books().faults().count > 0, "a thread of the soak panicked");
        watch.end(stage)
    }

    /// Notes what went wrong, and ends the soak with it; false if something did.
    fn end_with(&self, result: &Result<()>) -> bool {
        if let Err(error) = result {
            self.over.update(|over| *over = true);
            self.connection.books().fault(&format!("{error:#}"));
        }
        result.is_ok()
    }

    fn is_over(&self) -> bool {
        self.over.read(|over| *over)
    }

    /// Lists the tools whenever the server says that they changed.
    fn keep_list(&self) -> Result<()> {
        let (mailbox, mut seen) = (self.connection.mailbox(), 0);
        loop {
            let told = self.connection.listings().wait_until(LOOK, |times| *times > seen);
            if told {
                seen = self.connection.listings().read(|times| *times);
                self.list(&mailbox)?;
            } else if self.quiet.load(Ordering::SeqCst) {
                return Ok(());
            }
        }
    }

    fn list(&self, mailbox: &Mailbox<'_>) -> Result<()> {
        let tools = mailbox.tools().context("the tools could not be listed")?;
        ensure!(tools.is_sorted_by(|a, b| a < b), "the list of tools is not in order: {tools:?}");
        self.listed.update(|listed| *listed = tools.into_iter().collect());
        Ok(())
    }
}
