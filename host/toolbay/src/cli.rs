//! The command line: subcommands, options and exit codes.

mod add;
mod approvals;
mod audit;
mod bench;
mod call;
mod call_printer;
mod candidate;
mod check;
mod check_config;
mod check_report;
mod command;
mod common;
mod compile;
mod completions;
mod confirm;
mod console;
mod dev;
mod doctor;
mod downloaded_archive;
mod escape;
mod init;
mod install;
mod installation;
mod installed_files;
mod list;
mod load_progress;
mod lock;
mod manifest;
mod new;
mod notify_worker;
mod optimize;
mod output;
mod pack;
mod plugin_download;
mod plugin_file;
mod plugin_selection;
mod plugins_file;
mod progress;
mod ps;
mod publish;
mod questions;
mod remove;
mod replay;
mod requirements;
mod result;
mod secret_worker;
mod serve;
mod signals;
mod source_map;
mod stack_frames;
mod state;
mod supervisor;
mod sync;
mod task;
mod token;
mod update;

use std::process::ExitCode;

use bytesize::ByteSize;
use clap::{CommandFactory as _, Parser};
use toolbay_sandbox::WorkerJob;

use self::command::Command;
use self::output::complain;
use crate::config::ConfigError;
use crate::process::stderr::FlushGuard;

/// Exit code for an invalid configuration (`EX_USAGE` in sysexits.h).
const EXIT_BAD_CONFIGURATION: u8 = 64;

/// An MCP server whose tools are WebAssembly components: copy a .wasm file into a folder to add a
/// tool
#[derive(Debug, Parser)]
#[command(name = "toolbay", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Runs the command and returns the exit code of the process: 0, 1, or 64 for an invalid
    /// configuration.
    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    pub fn run(self) -> ExitCode {
        let _flushed = FlushGuard;
        let result = match self.command {
            Command::Serve {
                file,
                mut common,
                listen,
                sync,
            } => common
                .select_file(file.as_deref())
                .map_err(Into::into)
                .and_then(|()| serve::run(&common, &listen, sync)),
            Command::Init {
                folder,
                samples,
                from,
            } => init::run(&folder, samples.as_deref(), from),
            Command::Approvals { command, pid } => approvals::run(command, pid),
            Command::Console { pid } => console::run(pid),
            Command::Bench {
                target,
                arguments,
                mut common,
                calls,
                json,
            } => call::CallCommand::read(&mut common, target, arguments).and_then(|command| {
                bench::run(&common, command, bench::BenchOptions { calls, json })
            }),
            Command::Ps { pid, stop, json } => ps::run(pid, stop, json),
            Command::Completions { shell } => Ok(completions::run(Self::command(), shell)),
            Command::Manual { folder } => completions::write_manual(Self::command(), &folder),
            Command::Token(command) => token::run(command),
            Command::State { command } => state::run(command),
            Command::Audit(audit) => audit::run(audit),
            Command::Replay {
                file,
                plugin,
                tool,
                common,
                json,
            } => replay::run(
                common,
                &file,
                &replay::ReplaySelection { plugin, tool },
                json,
            ),
            Command::Check {
                file,
                settings,
                json,
            } => check::run(&settings, &file, json),
            Command::CheckConfig {
                common,
                listen,
                json,
            } => check_config::run(&common, &listen, json),
            Command::Doctor {
                confinement_only: true,
                ..
            } => Ok(doctor::run_confinement()),
            Command::Doctor { common, json, .. } => doctor::run(&common, json),
            Command::New {
                name,
                language,
                plain,
                server,
            } => {
                let kind = match (plain, server) {
                    (true, _) => new::ProjectKind::Plain,
                    (_, true) => new::ProjectKind::Server,
                    _ => new::ProjectKind::Sdk,
                };
                new::run(&name, language, kind)
            }
            Command::Install(options) => install::install(&options),
            Command::Uninstall(options) => install::uninstall(&options),
            Command::Dev {
                project,
                common,
                once,
                answer,
            } => dev::run(&common, &project, once, &answer),
            Command::Pack { paths, output } => pack::run(&paths, &output),
            Command::Add(options) => add::run(&options),
            Command::Publish(options) => publish::run(&options),
            Command::Remove(options) => remove::run(&options),
            Command::Update(options) => update::run(&options),
            Command::Outdated(options) => update::outdated(&options),
            Command::Sync(options) => sync::run(&options),
            Command::Lock(options) => lock::run(&options),
            Command::Diff(options) => lock::diff(&options),
            Command::Compile(common) => compile::run(&common),
            Command::Optimize {
                file,
                output,
                force,
                allow,
                call,
                settings,
            } => optimize::run(
                &settings,
                &file,
                output,
                optimize::OptimizeOptions {
                    force,
                    allow,
                    calls: call,
                },
            ),
            Command::CompileWorker {
                stack,
                memory,
                cpu,
                concurrent,
                instrument,
                snapshot,
            } => {
                let job = match (instrument, snapshot) {
                    (true, _) => WorkerJob::Instrument,
                    (false, true) => WorkerJob::Snapshot,
                    (false, false) => WorkerJob::Compile,
                };
                return toolbay_sandbox::compile_worker(
                    ByteSize::b(stack),
                    memory,
                    cpu,
                    concurrent,
                    job,
                );
            }
            Command::Escape { common, listen } => escape::run(&common, &listen),
            Command::NotifyWorker { words } => notify_worker::run(&words),
            Command::SecretWorker { folder, writable } => secret_worker::run(&folder, writable),
            Command::List {
                plugin,
                common,
                json,
            } => list::run(&common, plugin.as_deref(), json),
            Command::Call {
                target,
                arguments,
                mut common,
                json,
                usage,
                output,
                task,
                yes,
                answer,
                record,
            } => call::CallCommand::read(&mut common, target, arguments).and_then(|command| {
                call::run(
                    &common,
                    command,
                    &call::CallOutputOptions {
                        json,
                        usage,
                        task,
                        output,
                    },
                    call::GivenAnswers {
                        yes,
                        answers: answer,
                    },
                    record,
                )
            }),
        };
        // On a full disk, the output can be truncated.
        let result = result.map(|code| {
            if output::has_printed_all() {
                code
            } else {
                ExitCode::FAILURE
            }
        });
        result.unwrap_or_else(|error| {
            complain(&format!("{error:#}"));
            if error.is::<ConfigError>() {
                ExitCode::from(EXIT_BAD_CONFIGURATION)
            } else {
                ExitCode::FAILURE
            }
        })
    }
}
