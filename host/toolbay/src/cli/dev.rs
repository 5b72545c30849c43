//! `toolbay dev`: rebuilds a project after each change, copies it into the plugin folder, and makes
//! its example call.

mod project_setup;
mod source_check;

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::Command;
use toolbay_catalog::FolderWatcher;
use toolbay_model::QuestionKind;
use toolbay_model::text::clean_line;
use toolbay_settings::project::{self, CallExample, ProjectFile};

use self::project_setup::{ProjectSetup, dependency_paths};
use self::source_check::SourceCheck;
use super::call_printer::CallPrinter;
use super::common::{Common, Listen, block_on};
use super::confirm;
use super::load_progress::{command_server, wait_until_loaded};
use super::manifest;
use super::output::{complain, print};
use super::questions::{AnswerOption, CommandAnswers};
use super::requirements::check_installed;
use super::result::{self, MAX_PROBLEM_BYTES};
use super::stack_frames::StackFrames;
use crate::config::Config;

/// Time without changes before a build starts. Editors write several files when they save.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(100);

/// The project, the configuration of its server, and the answers for its example call.
struct DevProject<'a> {
    config: &'a Config,
    folder: &'a Path,
    answers: &'a [AnswerOption],
}

/// The outcome of a build.
struct DevOutcome {
    /// True if each step succeeded.
    succeeded: bool,
    /// The check of the sources, which may still run.
    check: SourceCheck,
}

pub(super) fn run(
    common: &Common,
    folder: &Path,
    once: bool,
    answers: &[AnswerOption],
) -> anyhow::Result<ExitCode> {
    // Check the project first: a wrong folder is the more likely mistake.
    let project = ProjectFile::read(folder)?;
    check_installed(&project)?;
    let config = &common.load_config_for_call(&Listen::default())?;
    let dev = DevProject {
        config,
        folder,
        answers,
    };
    block_on(async {
        if once {
            let DevOutcome { succeeded, check } = dev.build_and_run_example(&project).await?;
            let checked = check.finish().await;
            return Ok(if succeeded && checked {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        tokio::select! {
            result = dev.watch() => result,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        }
    })
}

impl DevProject<'_> {
    async fn watch(&self) -> anyhow::Result<ExitCode> {
        loop {
            // Read plugin.toml again, because it may have changed.
            match ProjectFile::read(self.folder) {
                Ok(project) => {
                    let mut watchers = ProjectWatchers::new(self.folder, &project)?;
                    let outcome = self.build_and_run_example(&project).await?;
                    print("\nWaiting for changes. Press Ctrl-C to stop.\n");
                    let mut changed = std::pin::pin!(watchers.wait(self.folder, &project));
                    // A change makes the results of the check obsolete.
                    tokio::select! {
                        () = &mut changed => continue,
                        _ = outcome.check.finish() => {}
                    }
                    changed.await;
                }
                Err(error) => {
                    complain(&error.to_string());
                    let mut watcher =
                        FolderWatcher::for_paths(&[self.folder.join(project::FILE_NAME)])
                            .map_err(anyhow::Error::msg)?;
                    watcher.changes().await;
                    wait_until_quiet(&mut watcher).await;
                }
            }
        }
    }

    /// Builds the project, copies the plugin and makes the example call. The check of the sources
    /// runs meanwhile.
    async fn build_and_run_example(&self, project: &ProjectFile) -> anyhow::Result<DevOutcome> {
        let started = Instant::now();
        let mut outcome = DevOutcome {
            succeeded: false,
            check: SourceCheck::default(),
        };
        let setup = ProjectSetup::read(self.folder, project);
        let setup_commands = if setup.is_current() {
            &[][..]
        } else {
            &project.setup
        };
        if !self.run_commands(setup_commands).await? {
            return Ok(outcome);
        }
        // Not before the setup, which installs what the check needs.
        outcome.check = SourceCheck::start(self.folder, &project.check);
        setup.record_success()?;
        let is_built = self.run_commands(&project.build).await?;
        // A build can write a lock file, or remove the folder of the record.
        setup.record_success()?;
        if !is_built {
            return Ok(outcome);
        }
        if let Err(error) = manifest::write_into_output(self.folder, project) {
            complain(&format!("{error:#}; the previous version stays in service"));
            return Ok(outcome);
        }
        let plugin = self.copy_plugin(project)?;
        print(&format!(
            "built in {:.1} s and copied to {}\n",
            started.elapsed().as_secs_f64(),
            plugin.display()
        ));
        outcome.succeeded = self.run_example(project).await?;
        Ok(outcome)
    }

    /// Runs shell commands in the project's folder. Returns whether all of them succeeded.
    async fn run_commands(&self, commands: &[String]) -> anyhow::Result<bool> {
        for command in commands {
            print(&format!("$ {command}\n"));
            let status = Command::new("sh")
                .arg("-c")
                .arg(command)
                .current_dir(self.folder)
                .kill_on_drop(true)
                .status()
                .await;
            let status = status.with_context(|| format!("failed to run `{command}`"))?;
            if !status.success() {
                complain(&format!(
                    "`{command}` failed; the previous version stays in service"
                ));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the files of the plugin into the plugin folder. Returns the path of its component.
    fn copy_plugin(&self, project: &ProjectFile) -> anyhow::Result<PathBuf> {
        let plugins = &self.config.plugins;
        let plugin = plugins.join(format!("{}.wasm", project.name));
        copy_atomically(&self.folder.join(&project.output), &plugin)?;
        for path in &project.extra_files {
            let name = path
                .file_name()
                .with_context(|| format!("{} has no name", path.display()))?;
            copy_atomically(&self.folder.join(path), &plugins.join(name))?;
        }
        Ok(plugin)
    }

    /// Loads the plugin folder as a server would, prints the plugin's status, and makes its example
    /// call.
    async fn run_example(&self, project: &ProjectFile) -> anyhow::Result<bool> {
        let id = &project.name;
        let server = command_server(self.config.clone()).start()?;
        let snapshot = wait_until_loaded(&server).await;
        let Some(report) = snapshot.plugins.get(id) else {
            bail!("the plugin {id} is not in the plugin folder")
        };
        let mut summary = String::new();
        if !result::are_problems_logged() {
            for problem in &report.problems {
                let _ = writeln!(summary, "! {}", clean_line(problem, MAX_PROBLEM_BYTES));
            }
        }
        let _ = writeln!(summary, "tools: {}", report.tools.join(", "));
        print(&summary);
        if report.tools.is_empty() {
            return Ok(false);
        }
        let Some(CallExample { tool, arguments }) = &project.example else {
            return Ok(true);
        };
        // The grant may add a prefix to the tool names.
        let matching_tool = report.tools.iter().find(|name| {
            *name == tool
                || snapshot
                    .tools
                    .get(*name)
                    .is_some_and(|offer| offer.definition.tool.name == *tool)
        });
        let Some(tool_name) = matching_tool else {
            let file = project::FILE_NAME;
            let tools = report.tools.join(", ");
            complain(&format!(
                "{file}: [example] calls {tool}, but the tools of the plugin are {tools}; change `tool` there, or delete [example]"
            ));
            return Ok(false);
        };
        print(&format!(
            "> {tool_name} {}\n",
            serde_json::Value::Object(arguments.clone())
        ));
        let needs_approval = snapshot
            .tools
            .get(tool_name)
            .is_some_and(|offer| offer.approval_policy().is_some());
        if needs_approval && !confirm::is_possible() {
            complain(&format!(
                "the grant of {id:?} requires a person to allow calls of {tool_name:?} (require_approval): run `toolbay dev` on a \
                 terminal, or try the tool with `toolbay call --yes`"
            ));
            return Ok(false);
        }
        let printer = Arc::new(CallPrinter::new(id, StackFrames::of_project(self.folder)));
        let mut answers = CommandAnswers::new(self.answers.to_vec(), false, Arc::clone(&printer))?;
        let answered = server
            .call_answered(
                tool_name.clone(),
                arguments.clone(),
                printer,
                QuestionKind::ALL.to_vec(),
                &mut answers,
            )
            .await;
        if answers.was_refused() {
            complain("not called");
            return Ok(false);
        }
        // An error in the example must not end the watch.
        let answer = answered.and_then(|answer| answers.finish(&answer).map(|()| answer));
        match answer {
            Ok(answer) => Ok(result::print_answer(answer, false) == ExitCode::SUCCESS),
            Err(error) => {
                complain(&format!("{error:#}"));
                Ok(false)
            }
        }
    }
}

/// Watchers of a project.
struct ProjectWatchers {
    /// The paths of `watch`, and plugin.toml.
    sources: FolderWatcher,
    /// The files that list the dependencies.
    dependencies: FolderWatcher,
}

impl ProjectWatchers {
    fn new(folder: &Path, project: &ProjectFile) -> anyhow::Result<Self> {
        let mut paths: Vec<PathBuf> = project.watch.iter().map(|path| folder.join(path)).collect();
        paths.push(folder.join(project::FILE_NAME));
        let watch = |paths: &[PathBuf]| FolderWatcher::for_paths(paths).map_err(anyhow::Error::msg);
        Ok(Self {
            sources: watch(&paths)?,
            dependencies: watch(&dependency_paths(folder))?,
        })
    }

    /// Waits for a change of a source, or of what the setup installs, and then until no more
    /// changes follow.
    async fn wait(&mut self, folder: &Path, project: &ProjectFile) {
        loop {
            tokio::select! {
                _ = self.sources.changes() => break wait_until_quiet(&mut self.sources).await,
                _ = self.dependencies.changes() => {
                    wait_until_quiet(&mut self.dependencies).await;
                    // The setup and the build also write lock files.
                    if !ProjectSetup::read(folder, project).is_current() {
                        break;
                    }
                }
            }
        }
    }
}

/// Waits until no more changes follow.
async fn wait_until_quiet(watcher: &mut FolderWatcher) {
    while tokio::time::timeout(DEBOUNCE_INTERVAL, watcher.changes())
        .await
        .is_ok()
    {}
}

/// Copies a file into the plugin folder atomically, so that a server that watches the folder never
/// reads a partial file.
fn copy_atomically(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().context("the plugin's path has no folder")?;
    let temporary = tempfile::Builder::new()
        .prefix(".toolbay-dev-")
        .tempfile_in(folder);
    let part = temporary.with_context(|| format!("failed to write into {}", folder.display()))?;
    std::fs::copy(from, part.path())
        .with_context(|| format!("cannot copy {}, the output of the build", from.display()))?;
    // A temporary file is readable only by its owner, but another user may serve the plugin.
    std::fs::set_permissions(part.path(), Permissions::from_mode(0o644))?;
    part.persist(to)
        .with_context(|| format!("failed to write {}", to.display()))?;
    Ok(())
}
