//! `cargo xtask toolchains`: builds plugins with the default settings of compilers and packagers
//! that have no support for Toolbay, and calls every tool.
//!
//! Each folder in `tests/toolchains` is a project of one compiler or packager. `calls.json`
//! contains the expected results of the tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstream::println;
use anyhow::{Context, Result, bail};
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::clients;
use crate::languages::project::{BuildEnvironment, PluginProject};
use crate::tally::TestCounts;

/// The projects that are MCP servers, whose tools all clients call.
const MCP_SERVER_PROJECTS: [&str; 2] = ["mcp-rust", "mcp-typescript"];

/// Runs `cargo xtask toolchains`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<ExitCode> {
    let server = WorkspaceBuilder::new(workspace).build_server(BuildProfile::Dev)?;
    let mut tally = TestCounts::default();
    let result = test(workspace, &server, &mut tally);
    println!("\n{tally}");
    result.map(|()| ExitCode::SUCCESS)
}

/// Runs the test step.
pub(crate) fn test(
    workspace: &CargoWorkspace,
    server: &Path,
    tally: &mut TestCounts,
) -> Result<()> {
    let sources = workspace.root.join("tests/toolchains");
    let target = workspace.target.join("toolchain-plugins");
    let machine = BuildEnvironment::new(workspace);
    let plugins = target.join("plugins");
    if plugins.exists() {
        fs::remove_dir_all(&plugins)
            .with_context(|| format!("failed to empty {}", plugins.display()))?;
    }
    fs::create_dir_all(&plugins)?;
    let mut failed = Vec::new();
    for folder in project_folders(&sources)? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match build_project(&machine, &folder, &target.join(&name), &plugins) {
            Ok(()) => println!("built {name}"),
            Err(error) => {
                println!("{} {error:#}", terminal::red("error:"));
                failed.push(name);
            }
        }
    }
    tally.failed += failed.len() as u64;
    // This client runs first, while the grants still allow nothing.
    let mut others = clients::node_script(workspace, "servers.mjs")?;
    others.arg(server).arg(&plugins).args(MCP_SERVER_PROJECTS);
    let mut client = clients::python_script(workspace, "toolchains.py")?;
    client
        .arg(server)
        .arg(&plugins)
        .arg(sources.join("calls.json"));
    for client in [&mut others, &mut client] {
        tally.run_and_print(client)?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("not built: {}", failed.join(", "))
    }
}

/// Returns the folders of the projects, sorted by name.
fn project_folders(sources: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(sources).with_context(|| format!("failed to read {}", sources.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(toolbay_settings::project::FILE_NAME).is_file());
    folders.sort();
    Ok(folders)
}

/// Builds a copy of a project and copies the output into `plugins`. Reuses the copy of an earlier
/// run, with its installed packages.
fn build_project(
    machine: &BuildEnvironment,
    source: &Path,
    copy: &Path,
    plugins: &Path,
) -> Result<()> {
    fs::create_dir_all(copy).with_context(|| format!("failed to create {}", copy.display()))?;
    for entry in fs::read_dir(source)?.flatten() {
        if entry.path().is_file() {
            let to = copy.join(entry.file_name());
            fs::copy(entry.path(), &to)
                .with_context(|| format!("failed to write {}", to.display()))?;
        }
    }
    let project = PluginProject::read(copy)?;
    if let Some(missing) = machine.install_missing(&project.manifest.requires)? {
        bail!("{missing}");
    }
    // The setup commands pin the versions of the packages, so the same commands need not run again.
    let setup = project.manifest.setup.join("\n");
    let stamp = copy.join("set-up");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&setup) {
        project
            .manifest
            .setup
            .iter()
            .try_for_each(|line| machine.run_in_project(&project, line))?;
        fs::write(&stamp, &setup)?;
    }
    project
        .manifest
        .build
        .iter()
        .try_for_each(|line| machine.run_in_project(&project, line))?;
    project.copy_into(plugins)?;
    // Several projects have tools with the same names, so each plugin has a prefix.
    let name = &project.manifest.name;
    fs::write(
        plugins.join(name).with_extension("toml"),
        format!("prefix = \"{name}\"\n"),
    )
    .with_context(|| format!("failed to write the grant of {name}"))
}
