//! `toolbay call`: one call, under the limits that serving would apply.

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};

use super::{Common, Listen, block_on, complain, loaded, print};
use crate::access::Caller;
use crate::catalog::{Snapshot, Status};
use crate::limits::Limits;
use crate::mcp::{result_json, revision::Revision};
use crate::sandbox::{LogLevel, Observer, Progress, Usage, thousands};
use crate::service::{Answer, Failure, Request, Service};
use crate::toml_file::nearest;

/// How many problems of plugins are told when a tool is unknown.
const PROBLEMS: usize = 10;

/// How the outcome is printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Show {
    /// The whole result as JSON.
    pub(super) json: bool,
    /// What was used, beside what was allowed.
    pub(super) usage: bool,
}

pub(super) fn run(common: &Common, tool: String, arguments: &str, show: Show) -> anyhow::Result<ExitCode> {
    let arguments = read(arguments)?;
    let config = common.configure(true, &Listen::default())?;
    block_on(async {
        let (service, snapshot) = loaded(config).await?;
        if !snapshot.tools.contains_key(&tool) {
            bail!(unknown(&tool, &snapshot));
        }
        let limits =
            snapshot.tools.get(&tool).map(|tool| tool.plugin.environment(&tool.definition.name).limits.clone());
        let answer = call(Arc::new(service), Request::local(tool, arguments)).await?;
        let used = answer.usage;
        let code = self::show(answer, show.json);
        if let (true, Some(used), Some(limits)) = (show.usage, used, limits) {
            print_usage(used, &limits);
        }
        Ok(code)
    })
}

/// What to say of a tool that there is not: the nearest that there is, and what kept others from being there.
fn unknown(tool: &str, snapshot: &Snapshot) -> String {
    let names: Vec<&str> = snapshot.tools.keys().map(String::as_str).collect();
    let mut said = match nearest(tool, &names) {
        Some(near) => format!("unknown tool {tool:?}; did you mean {near:?}?"),
        None => format!("unknown tool {tool:?}; `toolbay list` shows what there is"),
    };
    // Whose tools they are nobody knows: it may be any of these that has it.
    let broken = snapshot.plugins.iter().filter(|(_, report)| !report.problems.is_empty());
    let mut problems = broken.flat_map(|(id, report)| report.problems.iter().map(move |problem| (id, report, problem)));
    for (id, report, problem) in problems.by_ref().take(PROBLEMS) {
        let refused = if report.status == Status::Refused { " was refused" } else { "" };
        let _ = write!(said, "\n  plugin {id:?}{refused}: {problem}");
    }
    let more = problems.count();
    if more > 0 {
        let _ = write!(said, "\n  and {more} more");
    }
    said
}

/// The arguments as an object, from the command line or from standard input.
fn read(arguments: &str) -> anyhow::Result<Map<String, Value>> {
    let mut text = arguments.to_owned();
    if arguments == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).context("failed to read the arguments from standard input")?;
    }
    match serde_json::from_str(&text).context("the arguments are not JSON")? {
        Value::Object(arguments) => Ok(arguments),
        _ => bail!("the arguments must be a JSON object, such as '{{\"city\": \"Bern\"}}'"),
    }
}

pub(super) async fn call(service: Arc<Service>, request: Request) -> anyhow::Result<Answer> {
    let calling = Arc::clone(&service);
    let running = service.sandbox().spawn(async move {
        let caller = Caller::local(calling.admission().client());
        calling.call(&caller, request, Arc::new(Terminal)).await
    });
    running.await.context("the call failed unexpectedly")
}

pub(super) fn show(answer: Answer, json: bool) -> ExitCode {
    let usage = answer.usage;
    let failed = answer.result.is_err();
    if let Err(Failure::UnknownTool(name)) = &answer.result {
        complain(&format!("unknown tool {name:?}"));
        return ExitCode::FAILURE;
    }
    match result_json(answer, Revision::LATEST) {
        Ok(result) if json => print(&format!("{result:#}\n")),
        Ok(result) => {
            print(&text(&result));
            if let Some(usage) = usage {
                complain(&used(usage));
            }
        }
        Err(message) => complain(&message),
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A result for a person: text as it is, everything else as one line that says what it is.
fn text(result: &Value) -> String {
    let mut out = String::new();
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let _ = match member("type") {
            "text" => writeln!(out, "{}", member("text")),
            kind @ ("image" | "audio") => {
                // Four characters of base64 are three bytes.
                writeln!(
                    out,
                    "[{kind}, {}, {} bytes]",
                    member("mimeType"),
                    member("data").trim_end_matches('=').len() * 3 / 4
                )
            }
            kind => writeln!(out, "[{kind}] {block}"),
        };
    }
    out
}

fn used(usage: Usage) -> String {
    let memory = bytesize::ByteSize::b(usage.memory).display().iec().to_string();
    format!("{} fuel, {:.1} ms, {memory} of memory at most", thousands(usage.fuel), usage.wall.as_secs_f64() * 1000.0)
}

/// What was used, beside what was allowed.
fn print_usage(used: Usage, limits: &Limits) {
    let bytes = |n: u64| bytesize::ByteSize::b(n).display().iec().to_string();
    let timeout = humantime::format_duration(limits.timeout);
    complain(&format!("fuel    {} of {} (limits.fuel)", thousands(used.fuel), thousands(limits.fuel)));
    complain(&format!("time    {:.1} ms of {timeout} (limits.timeout)", used.wall.as_secs_f64() * 1000.0));
    complain(&format!("memory  {} of {} (limits.memory)", bytes(used.memory), bytes(limits.memory.as_u64())));
}

/// Shows a tool's progress while it runs; its log lines are in the log.
struct Terminal;

impl Observer for Terminal {
    fn log(&self, _level: LogLevel, _message: &str) {}

    fn progress(&self, progress: Progress) {
        let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.map(|message| format!(": {message}")).unwrap_or_default();
        complain(&format!("{}{total}{message}", progress.progress));
    }

    fn cancelled(&self) -> bool {
        false
    }
}
