//! The costs of one plugin: until it is first available, on later starts, and for each call.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytesize::ByteSize;
use clap::Args;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::{
    ProgramLog, SharedConnection, TestFolder, UnclaimedPolicy, process_usage, revision,
};

use crate::row::ms;
use crate::serving;

/// Maximum time of a first start, in which everything is compiled.
const PATIENCE: Duration = Duration::from_mins(15);

/// Number of measured calls in each round, after the first one.
const CALLS: u32 = 50;

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Plugin files that offer the same tool, such as one and what `toolbay optimize` made of it
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The call that is measured, such as 'greet={"name": "Ada"}'
    #[arg(long, value_name = "TOOL=JSON", value_parser = parse)]
    call: (String, Value),
    /// The grant, copied beside each file
    #[arg(long, value_name = "FILE")]
    grant: Option<PathBuf>,
}

fn parse(call: &str) -> Result<(String, Value), String> {
    let (tool, arguments) = call.split_once('=').unwrap_or((call, "{}"));
    let arguments =
        serde_json::from_str(arguments).map_err(|error| format!("no JSON after `=`: {error}"))?;
    Ok((tool.to_owned(), arguments))
}

/// The measurements of one file.
pub(crate) struct Costs {
    file: String,
    size: u64,
    first_start: LatencyHistogram,
    further_start: LatencyHistogram,
    first_call: LatencyHistogram,
    calls: LatencyHistogram,
    /// Peak memory of a server, in bytes.
    memory: u64,
}

impl Costs {
    fn of(path: &Path) -> Result<Self> {
        Ok(Self {
            file: path
                .file_name()
                .context("a plugin without a name")?
                .to_string_lossy()
                .into_owned(),
            size: fs::metadata(path)
                .with_context(|| format!("no plugin {}", path.display()))?
                .len(),
            first_start: LatencyHistogram::new()?,
            further_start: LatencyHistogram::new()?,
            first_call: LatencyHistogram::new()?,
            calls: LatencyHistogram::new()?,
            memory: 0,
        })
    }

    /// Returns the medians as JSON, in milliseconds and bytes.
    pub(crate) fn json(&self) -> Value {
        let ms = |durations: &LatencyHistogram| durations.median().as_secs_f64() * 1e3;
        json!({
            "file": self.file, "bytes": self.size, "first_start_ms": ms(&self.first_start),
            "further_start_ms": ms(&self.further_start), "first_call_ms": ms(&self.first_call),
            "call_ms": ms(&self.calls), "memory_bytes": self.memory,
        })
    }
}

/// Starts a server with each of the files alternately, twice: the first time everything is
/// compiled, and the second time everything is cached.
pub(crate) fn measure(server: &Path, options: &Options, rounds: u32) -> Result<Vec<Costs>> {
    let mut all = options
        .files
        .iter()
        .map(|file| Costs::of(file.as_path()))
        .collect::<Result<Vec<_>>>()?;
    for _ in 0..rounds {
        for (file, costs) in options.files.iter().zip(&mut all) {
            let folder = serving::with_plugin(server, file)?;
            if let Some(grant) = &options.grant {
                let beside = folder
                    .plugin_folder()
                    .join(&costs.file)
                    .with_extension("toml");
                fs::copy(grant, beside).with_context(|| format!("no grant {}", grant.display()))?;
            }
            costs
                .first_start
                .add(started(&folder, options, |_| Ok(()))?);
            let further = started(&folder, options, |connection| {
                let mut took = calls(connection, options)?.into_iter();
                took.next()
                    .into_iter()
                    .for_each(|first| costs.first_call.add(first));
                took.for_each(|further| costs.calls.add(further));
                costs.memory = costs
                    .memory
                    .max(process_usage::vitals(connection.pid())?.resident << 10);
                Ok(())
            })?;
            costs.further_start.add(further);
        }
    }
    Ok(all)
}

/// Starts a server, runs `then` once it offers the tool, and stops it. Returns the time until the
/// tool was available.
fn started(
    folder: &TestFolder,
    options: &Options,
    then: impl FnOnce(&SharedConnection) -> Result<()>,
) -> Result<Duration> {
    let log = ProgramLog::default();
    let began = Instant::now();
    let connection = SharedConnection::start(
        serving::start(folder, None),
        UnclaimedPolicy::Check,
        log.line_handler(),
    )?;
    connection.initialize(revision::NEWEST_SESSION_REVISION)?;
    let wanted = &options.call.0;
    connection.wait_until_listed(PATIENCE, |tools| tools.iter().any(|tool| tool == wanted))?;
    let elapsed = began.elapsed();
    then(&connection)?;
    connection.stop(PATIENCE)?;
    Ok(elapsed)
}

/// Returns the duration of each sequential call.
fn calls(connection: &SharedConnection, options: &Options) -> Result<Vec<Duration>> {
    let (tool, arguments) = &options.call;
    let mailbox = connection.open_mailbox();
    let once = || {
        let began = Instant::now();
        let answer = mailbox.call_and_wait(tool, arguments)?;
        let result = answer
            .message
            .map_err(|error| anyhow::anyhow!("the call failed: {error}"))?;
        let failed = result
            .get("isError")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        ensure!(
            !failed,
            "the call failed: {}",
            toolbay_testkit::message::result_text(&result)
        );
        Ok(answer.received_at - began)
    };
    (0..=CALLS).map(|_| once()).collect()
}

/// Returns the medians and the peak memory in human-readable form.
pub(crate) fn table(all: &[Costs]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "file",
        "size",
        "first start",
        "further start",
        "first call",
        "further calls",
        "memory",
    ]);
    for costs in all {
        let mib = |bytes| ByteSize::b(bytes).display().iec().to_string();
        table.add_row([
            costs.file.clone(),
            mib(costs.size),
            ms(costs.first_start.median()),
            ms(costs.further_start.median()),
            ms(costs.first_call.median()),
            ms(costs.calls.median()),
            mib(costs.memory),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
