//! `toolbay call`: makes one call, with the same limits as when the tool is served.

mod argument_schema;
mod arguments;
mod saved_files;
mod unknown_tool;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use toolbay_model::text::{format_duration, format_thousands};
use toolbay_model::{CallUsage, Limits, QuestionKind};

pub(super) use self::arguments::{GivenArguments, parse_arguments};
use self::saved_files::save_files;
pub(super) use self::unknown_tool::unknown_tool_message;
use super::call_printer::CallPrinter;
use super::common::{Common, Listen, Record, block_on};
use super::confirm;
use super::load_progress::{command_server, wait_until_loaded};
use super::output::{complain, note};
use super::plugin_selection::{is_plugin_file, select_plugin};
use super::questions::{AnswerOption, CommandAnswers};
use super::result;
use super::stack_frames::StackFrames;
use super::task;
use crate::config::ConfigError;

/// Time after which a call becomes a task.
const TASK_DELAY: Duration = Duration::from_millis(1);

/// The tool to call, with its arguments.
#[derive(Debug)]
pub(super) struct CallCommand {
    pub(super) tool: String,
    pub(super) arguments: GivenArguments,
}

/// Output options.
#[derive(Clone, Debug, Default)]
pub(super) struct CallOutputOptions {
    /// Print the complete result as JSON.
    pub(super) json: bool,
    /// Print the resource usage next to the limits.
    pub(super) usage: bool,
    /// Call as a client that supports tasks.
    pub(super) task: bool,
    /// The folder for images and files.
    pub(super) output: Option<PathBuf>,
}

/// Answers that the command line gives.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenAnswers {
    /// Allow a call that requires approval without a question.
    pub(super) yes: bool,
    /// Answers to the questions of the tool.
    pub(super) answers: Vec<AnswerOption>,
}

impl CallCommand {
    /// Reads the tool and its arguments from a command line, such as `echo text=hello` or
    /// `FILE.wasm echo text=hello`. In the latter case, `common` selects the plugin.
    ///
    /// # Errors
    ///
    /// The command line is incomplete, or the file or an argument is invalid.
    pub(super) fn read(
        common: &mut Common,
        target: String,
        mut rest: Vec<String>,
    ) -> anyhow::Result<Self> {
        let tool = if is_plugin_file(&target) {
            common.select(select_plugin(Path::new(&target))?)?;
            if rest.is_empty() {
                return Err(ConfigError::new(format!(
                    "name the tool after the plugin file; `toolbay check {target}` shows its tools"
                ))
                .into());
            }
            rest.remove(0)
        } else {
            target
        };
        Ok(Self {
            tool,
            arguments: parse_arguments(&rest)?,
        })
    }
}

/// Makes the call and prints its result.
pub(super) fn run(
    common: &Common,
    CallCommand { tool, arguments }: CallCommand,
    show: &CallOutputOptions,
    given: GivenAnswers,
    record: Record,
) -> anyhow::Result<ExitCode> {
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
        let server = command_server(config).record(record).start()?;
        let snapshot = wait_until_loaded(&server).await;
        let Some(offer) = snapshot.tools.get(&tool) else {
            bail!(unknown_tool_message(&tool, &snapshot))
        };
        let schema = serde_json::from_str(offer.tool.input_schema.get())?;
        let arguments = arguments.into_object(&schema)?;
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
        let name = offer.definition.tool.name.clone();
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
        let saved = show
            .output
            .as_deref()
            .map(|folder| save_files(&answer, &name, folder));
        let code = result::print_answer(answer, show.json);
        if let (true, Some(used)) = (show.usage, usage) {
            print_usage(used, &limits);
        }
        for line in saved.transpose()?.into_iter().flatten() {
            note(&line);
        }
        Ok(code)
    })
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
