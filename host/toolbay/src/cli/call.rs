//! `toolbay call`: makes one call, with the same limits as when the tool is served.

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use toolbay_catalog::{PluginFileStatus, Snapshot};
use toolbay_model::text::{clean_line, format_duration, format_thousands};
use toolbay_model::{CallUsage, Limits, QuestionKind};
use toolbay_settings::toml_file::nearest;

use super::call_printer::CallPrinter;
use super::common::{Common, Listen, Record, block_on};
use super::confirm;
use super::load_progress::wait_until_loaded;
use super::output::complain;
use super::questions::{AnswerOption, CommandAnswers};
use super::result::{self, MAX_PROBLEM_BYTES};
use super::stack_frames::StackFrames;
use super::task;
use crate::serve::server::Server;

/// Maximum number of plugin problems that are printed for an unknown tool.
const MAX_PROBLEMS: usize = 10;

/// Time after which a call becomes a task.
const TASK_DELAY: Duration = Duration::from_millis(1);

/// Output options.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallOutputOptions {
    /// Print the complete result as JSON.
    pub(super) json: bool,
    /// Print the resource usage next to the limits.
    pub(super) usage: bool,
    /// Call as a client that supports tasks.
    pub(super) task: bool,
}

/// Answers that the command line gives.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenAnswers {
    /// Allow a call that requires approval without a question.
    pub(super) yes: bool,
    /// Answers to the questions of the tool.
    pub(super) answers: Vec<AnswerOption>,
}

/// Makes the call and prints its result.
pub(super) fn run(
    common: &Common,
    tool: String,
    arguments: &str,
    show: CallOutputOptions,
    given: GivenAnswers,
    record: Record,
) -> anyhow::Result<ExitCode> {
    let arguments = read_arguments(arguments)?;
    let listen = Listen {
        record,
        ..Listen::default()
    };
    let mut config = common.load_config_for_call(&listen)?;
    // The configuration belongs to a server, which may be running. Record only if the command line
    // requests it.
    let record = listen.record.record.is_some();
    if show.task {
        // `--task` is for trying tasks, so even a short call becomes one.
        config.tasks.after = TASK_DELAY;
    }
    block_on(async {
        let server = Server::builder(config)
            .watch(false)
            .audit(false)
            .record(record)
            .start()?;
        let snapshot = wait_until_loaded(&server).await;
        let Some(offer) = snapshot.tools.get(&tool) else {
            bail!(unknown_tool_message(&tool, &snapshot))
        };
        // The result does not contain these: why the use of an import was denied, and warnings
        // about the plugin.
        let problems = snapshot
            .plugins
            .get(&offer.plugin.id)
            .map_or(&[][..], |report| &report.problems);
        result::print_problems(&offer.plugin.id, problems);
        let limits = offer
            .plugin
            .tool_context(&offer.definition.tool.name)
            .limits
            .clone();
        if show.task && offer.approval_policy().is_some() {
            bail!(
                "a person must allow calls of {tool:?} (require_approval), and --task cannot ask for that: call it without --task"
            );
        }
        if offer.approval_policy().is_some() && !given.yes && !confirm::is_possible() {
            bail!(
                "the grant of {:?} requires a person to allow calls of {tool:?} (require_approval): call it from a \
                 terminal, or add --yes",
                offer.plugin.id
            );
        }
        if show.task {
            return task::run(&server, &tool, arguments, show.json).await;
        }
        let printer = Arc::new(CallPrinter::new(&offer.plugin.id, StackFrames::default()));
        let mut answers = CommandAnswers::new(given.answers, given.yes, Arc::clone(&printer))?;
        let answer = server
            .call_answered(
                tool,
                arguments,
                printer,
                QuestionKind::ALL.to_vec(),
                &mut answers,
            )
            .await?;
        if answers.was_refused() && !show.json {
            complain("not called");
            return Ok(ExitCode::FAILURE);
        }
        answers.finish(&answer)?;
        let usage = answer.usage;
        let code = result::print_answer(answer, show.json);
        if let (true, Some(used)) = (show.usage, usage) {
            print_usage(used, &limits);
        }
        Ok(code)
    })
}

/// Returns the message about an unknown tool, with the most similar name and the problems of
/// plugins that may provide the tool.
fn unknown_tool_message(tool: &str, snapshot: &Snapshot) -> String {
    let names: Vec<&str> = snapshot.tools.keys().map(String::as_str).collect();
    let matching_tools = snapshot
        .tools
        .iter()
        .filter(|(_, offer)| offer.definition.tool.name == tool);
    let prefixed: Vec<&str> = matching_tools
        .map(|(name, _)| name.as_str())
        .take(MAX_PROBLEMS)
        .collect();
    let mut message = match nearest(tool, &names) {
        _ if !prefixed.is_empty() => {
            let full: Vec<String> = prefixed.iter().map(|name| format!("{name:?}")).collect();
            format!(
                "unknown tool {tool:?}; its full name is {}",
                full.join(" or ")
            )
        }
        _ if snapshot.prompts.contains_key(tool) => {
            format!("{tool:?} is a prompt, not a tool: clients get it with prompts/get")
        }
        Some(near) => format!("unknown tool {tool:?}; did you mean {near:?}?"),
        None => format!("unknown tool {tool:?}; `toolbay list` shows the available tools"),
    };
    // Any plugin with a problem may provide the tool.
    let with_problems = snapshot
        .plugins
        .iter()
        .filter(|(_, report)| !report.problems.is_empty());
    let mut problems = with_problems.flat_map(|(id, report)| {
        report
            .problems
            .iter()
            .map(move |problem| (id, report, problem))
    });
    for (id, report, problem) in problems.by_ref().take(MAX_PROBLEMS) {
        let refused = if report.status == PluginFileStatus::Refused {
            " was refused"
        } else {
            ""
        };
        let _ = write!(
            message,
            "\n  plugin {id:?}{refused}: {}",
            clean_line(problem, MAX_PROBLEM_BYTES)
        );
    }
    let more = problems.count();
    if more > 0 {
        let _ = write!(message, "\n  and {more} more");
    }
    message
}

/// Reads the arguments from the command line or from standard input.
fn read_arguments(arguments: &str) -> anyhow::Result<Map<String, Value>> {
    let mut text = arguments.to_owned();
    if arguments == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("failed to read the arguments from standard input")?;
    }
    match serde_json::from_str(&text).context("the arguments are not valid JSON")? {
        Value::Object(arguments) => Ok(arguments),
        _ => bail!("the arguments must be a JSON object, such as '{{\"city\": \"Bern\"}}'"),
    }
}

/// Prints the resource usage next to the limits.
fn print_usage(used: CallUsage, limits: &Limits) {
    let bytes = |n: u64| bytesize::ByteSize::b(n).display().iec().to_string();
    let timeout = format_duration(limits.timeout);
    complain(&format!(
        "fuel    {} of {} (limits.fuel)",
        format_thousands(used.fuel),
        format_thousands(limits.fuel)
    ));
    complain(&format!(
        "time    {:.1} ms of {timeout} (limits.timeout)",
        used.wall.as_secs_f64() * 1000.0
    ));
    complain(&format!(
        "memory  {} of {} (limits.memory)",
        bytes(used.memory),
        bytes(limits.memory.as_u64())
    ));
}
