//! The time from the disconnection of the client until the server exits.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::{ToolbayCommand, message, revision};

use crate::row::{Row, Target};
use crate::stage::Stage;

/// Maximum additional time with running guests, compared with an idle server.
const TARGET: Duration = Duration::from_millis(5);

/// Number of measurements of each kind in a round.
const TIMES: u32 = 3;

/// Number of guests that run when the client disconnects.
const GUESTS: u64 = 2;

/// Measures a server without guests, and with guests in different states.
pub(crate) fn measure(stage: &Stage, rounds: u32) -> Result<Vec<Row>> {
    let idle = repeated(stage, None, rounds)?;
    let mut rows = Vec::new();
    for (tool, words) in [
        ("spin", "computing"),
        ("random", "asking for random bytes"),
        ("sleep", "sleeping"),
    ] {
        let took = repeated(stage, Some(tool), rounds)?;
        let what = format!("client gone, {GUESTS} guests {words} → server gone");
        rows.push(Row::new(what, took, Some(&idle), Target::Over(TARGET)));
    }
    rows.insert(
        0,
        Row::new("client gone, idle → server gone", idle, None, Target::None),
    );
    Ok(rows)
}

fn repeated(stage: &Stage, tool: Option<&str>, rounds: u32) -> Result<LatencyHistogram> {
    let mut latencies = LatencyHistogram::new()?;
    for _ in 0..rounds * TIMES {
        latencies.add(once(stage, tool)?);
    }
    Ok(latencies)
}

/// Disconnects without a message, as a killed client does: both ends of the connection close.
fn once(stage: &Stage, tool: Option<&str>) -> Result<Duration> {
    let mut conversation = Conversation::begin(stage)?;
    conversation.says(&message::request(
        0,
        "initialize",
        &message::initialize_params(revision::NEWEST_SESSION_REVISION),
    ))?;
    conversation.hears(|message| message.get("id").is_some_and(|id| id == 0))?;
    conversation.says(&message::notification(
        "notifications/initialized",
        &json!({}),
    ))?;
    for id in 1..=GUESTS {
        let Some(tool) = tool else { break };
        let params = message::call_params(&format!("burner.{tool}"), &json!({}), Some(id));
        conversation.says(&message::request(id, "tools/call", &params))?;
        conversation.hears(|message| {
            message
                .pointer("/params/progressToken")
                .is_some_and(|token| *token == id)
        })?;
    }
    let Conversation {
        mut server,
        input,
        output,
    } = conversation;
    let began = Instant::now();
    drop((input, output));
    server.wait().context("failed to wait for the server")?;
    Ok(began.elapsed())
}

/// A single-threaded client that can close its input. The client of the testkit has a thread that
/// reads to the end.
struct Conversation {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    fn begin(stage: &Stage) -> Result<Self> {
        let (mut command, _) = ToolbayCommand::new(&stage.folder)
            .args(["serve"])
            .into_parts();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = command.spawn().context("failed to start the server")?;
        let input = server.stdin.take().context("no standard input")?;
        let output = BufReader::new(server.stdout.take().context("no standard output")?);
        Ok(Self {
            server,
            input,
            output,
        })
    }

    fn says(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}").context("the server has gone")
    }

    /// Waits for a message that matches.
    fn hears(&mut self, fits: impl Fn(&Value) -> bool) -> Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the server exited");
            let message = message::parse_line(line.trim_end().as_bytes())?;
            ensure!(
                message.get("error").is_none(),
                "the server answered with an error: {message}"
            );
            if fits(&message) {
                return Ok(());
            }
        }
    }
}
