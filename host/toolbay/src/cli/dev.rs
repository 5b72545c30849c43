//! `toolbay dev`: rebuilds a project after each change, copies it into the plugin folder, and makes
//! its example call.

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
use toolbay_model::text::clean_line;
use toolbay_settings::project::{self, CallExample, ProjectFile};

use super::common::{Common, Listen, block_on};
use super::confirm;
use super::load_progress::wait_until_loaded;
use super::manifest;
use super::output::{complain, print};
use super::requirements::check_installed;
use super::result::{self, ProgressPrinter};
use crate::config::Config;
use crate::serve::server::Server;

/// Time without changes before a build starts. Editors write several files when they save.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum length of a printed problem, in bytes. Parts of it come from the plugin.
const MAX_PROBLEM_BYTES: usize = 2_000;

pub(super) fn run(common: &Common, folder: &Path, once: bool) -> anyhow::Result<ExitCode> {
    // Check the project first: a wrong folder is the more likely mistake.
    let project = ProjectFile::read(folder)?;
    check_installed(&project)?;
    let config = common.load_config(true, &Listen::default())?;
    block_on(async {
        if once {
            let succeeded = build_and_run_example(&config, folder, &project).await?;
            return Ok(if succeeded {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        tokio::select! {
            result = watch(&config, folder) => result,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        }
    })
}

async fn watch(config: &Config, folder: &Path) -> anyhow::Result<ExitCode> {
    loop {
        // Read plugin.toml again, because it may have changed.
        match ProjectFile::read(folder) {
            Ok(project) => {
                let mut watcher = watch_project(folder, &project)?;
                let _ = build_and_run_example(config, folder, &project).await?;
                print("\nWaiting for changes. Press Ctrl-C to stop.\n");
                wait_for_changes(&mut watcher).await;
            }
            Err(error) => {
                complain(&error.to_string());
                let mut watcher = FolderWatcher::for_paths(&[folder.join(project::FILE_NAME)])
                    .map_err(anyhow::Error::msg)?;
                wait_for_changes(&mut watcher).await;
            }
        }
    }
}

fn watch_project(folder: &Path, project: &ProjectFile) -> anyhow::Result<FolderWatcher> {
    let mut paths: Vec<PathBuf> = project.watch.iter().map(|path| folder.join(path)).collect();
    paths.push(folder.join(project::FILE_NAME));
    FolderWatcher::for_paths(&paths).map_err(anyhow::Error::msg)
}

/// Waits for a change, then until no more changes follow.
async fn wait_for_changes(watcher: &mut FolderWatcher) {
    watcher.changes().await;
    while tokio::time::timeout(DEBOUNCE_INTERVAL, watcher.changes())
        .await
        .is_ok()
    {}
}

/// Builds the project, copies the plugin and makes the example call. Returns whether every step
/// succeeded.
async fn build_and_run_example(
    config: &Config,
    folder: &Path,
    project: &ProjectFile,
) -> anyhow::Result<bool> {
    let started = Instant::now();
    let setup = if folder.join(&project.output).exists() {
        &[][..]
    } else {
        &project.setup
    };
    for command in setup.iter().chain(&project.build) {
        print(&format!("$ {command}\n"));
        let status = Command::new("sh")
            .arg("-c")
            .arg(command)
            .current_dir(folder)
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
    if let Err(error) = manifest::write_into_output(folder, project) {
        complain(&format!("{error:#}; the previous version stays in service"));
        return Ok(false);
    }
    let plugin = config.plugins.join(format!("{}.wasm", project.name));
    copy_atomically(&folder.join(&project.output), &plugin)?;
    for path in &project.extra_files {
        let name = path
            .file_name()
            .with_context(|| format!("{} has no name", path.display()))?;
        copy_atomically(&folder.join(path), &config.plugins.join(name))?;
    }
    print(&format!(
        "built in {:.1} s and copied to {}\n",
        started.elapsed().as_secs_f64(),
        plugin.display()
    ));
    run_example(config, &project.name, project.example.as_ref()).await
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

/// Loads the plugin folder as a server would, prints the plugin's status, and makes its example
/// call.
async fn run_example(
    config: &Config,
    id: &str,
    example: Option<&CallExample>,
) -> anyhow::Result<bool> {
    let server = Server::builder(config.clone())
        .watch(false)
        .audit(false)
        .record(false)
        .start()?;
    let snapshot = wait_until_loaded(&server).await;
    let Some(report) = snapshot.plugins.get(id) else {
        bail!("the plugin {id} is not in the plugin folder")
    };
    let mut summary = String::new();
    for problem in &report.problems {
        let _ = writeln!(summary, "! {}", clean_line(problem, MAX_PROBLEM_BYTES));
    }
    let _ = writeln!(summary, "tools: {}", report.tools.join(", "));
    print(&summary);
    if report.tools.is_empty() {
        return Ok(false);
    }
    let Some(CallExample { tool, arguments }) = example else {
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
    let mut refused = false;
    let allow = async |question: &str| {
        refused = !confirm::ask_to_allow(question).await;
        !refused
    };
    let answer = server
        .call_allowed(
            tool_name.clone(),
            arguments.clone(),
            Arc::new(ProgressPrinter),
            allow,
        )
        .await;
    if refused {
        complain("not called");
        return Ok(false);
    }
    Ok(result::print_answer(answer, false) == ExitCode::SUCCESS)
}
