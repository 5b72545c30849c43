//! `toolbay dev`: builds a project after each change, puts it into the plugin folder, and makes its example call.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::Command;
use toolbay_catalog::Watcher;
use toolbay_settings::project::{self, Example, Project};

use super::common::{Common, Listen, block_on};
use super::output::{complain, print};
use super::requirements::ready;
use super::result::{self, Terminal};
use super::waiting::loaded;
use crate::config::Config;
use crate::server::Server;

/// Editors write several files at a save: a build begins when that is over.
const QUIET: Duration = Duration::from_millis(100);

pub(super) fn run(common: &Common, folder: &Path, once: bool) -> anyhow::Result<ExitCode> {
    // The project first: a folder that is none is the likelier mistake.
    let project = Project::read(folder).map_err(anyhow::Error::msg)?;
    ready(&project)?;
    let config = common.configure(true, &Listen::default())?;
    block_on(async {
        if once {
            let done = round(&config, folder, &project).await?;
            return Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::select! {
            result = watch(&config, folder) => result,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        }
    })
}

async fn watch(config: &Config, folder: &Path) -> anyhow::Result<ExitCode> {
    loop {
        // Read anew: it may be what changed.
        match Project::read(folder) {
            Ok(project) => {
                let mut watcher = watcher(folder, &project)?;
                let _ = round(config, folder, &project).await?;
                print("\nWaiting for a change; Ctrl-C ends.\n");
                settled(&mut watcher).await;
            }
            Err(why) => {
                complain(&why);
                let mut watcher = Watcher::over(&[folder.join(project::FILE)]).map_err(anyhow::Error::msg)?;
                settled(&mut watcher).await;
            }
        }
    }
}

fn watcher(folder: &Path, project: &Project) -> anyhow::Result<Watcher> {
    let mut paths: Vec<PathBuf> = project.watch.iter().map(|path| folder.join(path)).collect();
    paths.push(folder.join(project::FILE));
    Watcher::over(&paths).map_err(anyhow::Error::msg)
}

/// Waits for a change, and for the changes after it.
async fn settled(watcher: &mut Watcher) {
    watcher.changes().await;
    while tokio::time::timeout(QUIET, watcher.changes()).await.is_ok() {}
}

/// Builds, copies and calls. Whether all of it went well.
async fn round(config: &Config, folder: &Path, project: &Project) -> anyhow::Result<bool> {
    let began = Instant::now();
    let setup = if folder.join(&project.output).exists() { &[][..] } else { &project.setup };
    for command in setup.iter().chain(&project.build) {
        print(&format!("$ {command}\n"));
        let status = Command::new("sh").arg("-c").arg(command).current_dir(folder).kill_on_drop(true).status().await;
        let status = status.with_context(|| format!("failed to run `{command}`"))?;
        if !status.success() {
            complain(&format!("`{command}` failed; the version before it goes on serving"));
            return Ok(false);
        }
    }
    let plugin = config.plugins.join(format!("{}.wasm", project.name));
    deliver(&folder.join(&project.output), &plugin)?;
    for path in &project.beside {
        let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?;
        deliver(&folder.join(path), &config.plugins.join(name))?;
    }
    print(&format!("built in {:.1} s, and now in {}\n", began.elapsed().as_secs_f64(), plugin.display()));
    try_out(config, &project.name, project.example.as_ref()).await
}

/// Puts a file into the plugin folder at once, as a server that watches it likes best.
fn deliver(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().context("the plugin folder has no name")?;
    let part = tempfile::Builder::new().prefix(".toolbay-dev-").tempfile_in(folder);
    let part = part.with_context(|| format!("failed to write into {}", folder.display()))?;
    std::fs::copy(from, part.path())
        .with_context(|| format!("the build was to make {}, and it cannot be copied", from.display()))?;
    // A temporary file is its owner's alone; a plugin may be served by another user.
    std::fs::set_permissions(part.path(), Permissions::from_mode(0o644))?;
    part.persist(to).with_context(|| format!("failed to write {}", to.display()))?;
    Ok(())
}

/// Loads the folder as a server would, says what became of the plugin, and makes its example call.
async fn try_out(config: &Config, id: &str, example: Option<&Example>) -> anyhow::Result<bool> {
    let server = Server::builder(config.clone()).watch(false).start()?;
    let snapshot = loaded(&server).await;
    let Some(report) = snapshot.plugins.get(id) else { bail!("the plugin {id} is not in the folder") };
    let mut said = String::new();
    for problem in &report.problems {
        let _ = writeln!(said, "! {problem}");
    }
    let _ = writeln!(said, "tools: {}", report.tools.join(", "));
    print(&said);
    if report.tools.is_empty() {
        return Ok(false);
    }
    let Some(Example { tool, arguments }) = example else { return Ok(true) };
    // The grant may give its tools a prefix.
    let offered = report.tools.iter().find(|name| *name == tool || name.ends_with(&format!(".{tool}")));
    let Some(offered) = offered else { bail!("the example calls {tool}, which the plugin does not offer") };
    print(&format!("> {offered} {}\n", serde_json::Value::Object(arguments.clone())));
    let answer = server.call(offered.clone(), arguments.clone(), Arc::new(Terminal)).await;
    Ok(result::show(answer, false) == ExitCode::SUCCESS)
}
