//! What the lock file costs: a call, and the time until changed plugins are published, with
//! `lock.mode = "hold"` and with `"off"`. Both servers run at the same time and are measured in turn.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use toolbay_load::pause;
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::{
    DEADLINE, ProgramLog, SharedConnection, TestFolder, TinyComponent, ToolbayCommand,
    UnclaimedPolicy, revision,
};

use crate::row::{Row, Target};
use crate::serving;

/// Maximum time for a change, while plugins are compiled.
const PATIENCE: Duration = Duration::from_mins(5);

/// Time between two requests for the list.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Name of the lock file.
const LOCK_FILE: &str = "toolbay.lock";

/// The tool whose calls are measured. It never changes.
const TOOL: &str = "answer";

/// The versions between which plugins change. Both are compiled before the measurement.
const VERSIONS: [u32; 2] = [1, 2];

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Change this many plugins at once; several numbers are measured one after the other
    #[arg(
        long,
        value_name = "NUMBER",
        value_delimiter = ',',
        default_values_t = [1, 10, 100],
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    plugins: Vec<u32>,
    /// How many calls to measure with each mode, in each round
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
}

impl Options {
    /// Describes what is measured in a round.
    pub(crate) fn words(&self) -> String {
        format!("{} calls and 2 changes with each mode,", self.calls)
    }
}

/// Measures both modes.
pub(crate) fn measure(server: &Path, options: &Options, rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in &options.plugins {
        let locks = [
            lock_text(server, *count, VERSIONS[0])?,
            lock_text(server, *count, VERSIONS[1])?,
        ];
        let mut hold = Subject::start(server, "hold", *count, &locks)?;
        let mut off = Subject::start(server, "off", *count, &locks)?;
        for round in 0..rounds {
            // Each mode is first in every second round.
            let subjects = if round % 2 == 0 {
                [&mut hold, &mut off]
            } else {
                [&mut off, &mut hold]
            };
            for subject in subjects {
                subject.call(options.calls)?;
                for version in [VERSIONS[1], VERSIONS[0]] {
                    subject.change(version)?;
                }
            }
        }
        let [hold, off] = [hold.stop()?, off.stop()?];
        let plugins = if *count == 1 { "plugin" } else { "plugins" };
        rows.push(Row::new(
            format!("a call beside {count} {plugins}, hold compared with off"),
            hold.0,
            Some(&off.0),
            Target::None,
        ));
        rows.push(Row::new(
            format!("{count} {plugins} changed → all are listed, hold compared with off"),
            hold.1,
            Some(&off.1),
            Target::None,
        ));
    }
    Ok(rows)
}

/// A server with one mode, and what was measured.
struct Subject {
    folder: TestFolder,
    connection: SharedConnection,
    count: u32,
    locks: [String; 2],
    calls: LatencyHistogram,
    changes: LatencyHistogram,
}

impl Subject {
    /// Starts a server, and lets it load both versions once.
    fn start(server: &Path, mode: &str, count: u32, locks: &[String; 2]) -> Result<Self> {
        let folder = serving::folder(server)?;
        let path = folder.sibling_path("toolbay.toml");
        let config = fs::read_to_string(&path).context("failed to read the configuration")?;
        fs::write(&path, format!("{config}\n[lock]\nmode = \"{mode}\"\n"))
            .context("failed to write the configuration")?;
        fs::write(folder.plugin_path("answer.wasm"), answer())?;
        let log = ProgramLog::default();
        fs::write(folder.plugin_path(LOCK_FILE), &locks[0])?;
        for number in 0..count {
            fs::write(
                folder.plugin_path(&file_name(number)),
                plugin(number, VERSIONS[0]),
            )?;
        }
        let connection = SharedConnection::start(
            serving::start(&folder, None),
            UnclaimedPolicy::Check,
            log.line_handler(),
        )?;
        connection.initialize(revision::NEWEST_SESSION_REVISION)?;
        let mut subject = Self {
            folder,
            connection,
            count,
            locks: locks.clone(),
            calls: LatencyHistogram::new()?,
            changes: LatencyHistogram::new()?,
        };
        subject.wait_for_version(VERSIONS[0])?;
        for version in [VERSIONS[1], VERSIONS[0]] {
            subject.change(version)?;
        }
        // What was measured so far includes compiling.
        subject.changes = LatencyHistogram::new()?;
        Ok(subject)
    }

    /// Measures sequential calls.
    fn call(&mut self, count: u32) -> Result<()> {
        let mailbox = self.connection.open_mailbox();
        for _ in 0..count {
            let began = Instant::now();
            let answer = mailbox.call_and_wait(TOOL, &json!({}))?;
            ensure!(
                answer
                    .message
                    .is_ok_and(|result| result.get("isError").is_none()),
                "a call failed"
            );
            self.calls.add(answer.received_at - began);
        }
        Ok(())
    }

    /// Changes all plugins, with the lock file of their version, and measures the time until all are
    /// listed. The files are written next to the folder, and then renamed, the lock file first.
    fn change(&mut self, version: u32) -> Result<()> {
        let [first, second] = &self.locks;
        let lock = if version == VERSIONS[0] {
            first
        } else {
            second
        };
        let mut names = vec![LOCK_FILE.to_owned()];
        fs::write(self.folder.sibling_path(LOCK_FILE), lock)?;
        for number in 0..self.count {
            let name = file_name(number);
            fs::write(self.folder.sibling_path(&name), plugin(number, version))?;
            names.push(name);
        }
        let began = Instant::now();
        for name in &names {
            fs::rename(
                self.folder.sibling_path(name),
                self.folder.plugin_path(name),
            )?;
        }
        self.wait_for_version(version)?;
        self.changes.add(began.elapsed());
        Ok(())
    }

    /// Asks for the list until it has all plugins in this version. Notifications of changes are not
    /// used, because a server sends at most one per second.
    fn wait_for_version(&self, version: u32) -> Result<()> {
        let ending = format!("_v{version}");
        let mailbox = self.connection.open_mailbox();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let tools = mailbox.tool_names()?;
            let listed = tools.iter().filter(|tool| tool.ends_with(&ending)).count();
            if listed == self.count as usize {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{listed} of {} are listed",
                self.count
            );
            pause(POLL_INTERVAL);
        }
    }

    /// Stops the server. Returns the durations of calls and of changes.
    fn stop(self) -> Result<(LatencyHistogram, LatencyHistogram)> {
        self.connection.stop(DEADLINE)?;
        Ok((self.calls, self.changes))
    }
}

/// Returns the text of the lock file of a folder with this version of all plugins.
fn lock_text(server: &Path, count: u32, version: u32) -> Result<String> {
    let folder = serving::folder(server)?;
    fs::write(folder.plugin_path("answer.wasm"), answer())?;
    for number in 0..count {
        fs::write(
            folder.plugin_path(&file_name(number)),
            plugin(number, version),
        )?;
    }
    let locked = ToolbayCommand::new(&folder)
        .args(["lock"])
        .try_run_with("")?;
    ensure!(locked.code == 0, "toolbay lock failed: {}", locked.stderr);
    fs::read_to_string(folder.plugin_path(LOCK_FILE)).context("no lock file was written")
}

fn file_name(number: u32) -> String {
    format!("plugin-{number}.wasm")
}

fn answer() -> Vec<u8> {
    TinyComponent::new(&[TOOL]).with_text("42").build()
}

fn plugin(number: u32, version: u32) -> Vec<u8> {
    let tool = format!("tool_{number}_v{version}");
    TinyComponent::new(&[tool.as_str()]).build()
}
