//! `cargo xtask packages`: calls packages of npm and `PyPI` in plugins, and compares the values with
//! those of Node and `CPython`. Writes the tables of the book.

mod api_server;
mod lists;
mod npm;
mod page;
mod project;
mod pypi;
mod row;
mod trial;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstream::{eprintln, println};
use anyhow::{Context, Result, bail};
use clap::Args;
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::row::{PackageRegistry, PackageRow};
use self::trial::{PackageTrials, RowOutcome};
use crate::languages::project::BuildEnvironment;
use crate::tally::TestCounts;

/// Number of packages in the test step.
const SAMPLE_SIZE: usize = 20;

/// Which packages.
#[derive(Args)]
pub(crate) struct PackageOptions {
    /// Packages of the lists in tests/packages; without any, all of them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only packages for JavaScript
    #[arg(long, conflicts_with = "pypi")]
    npm: bool,
    /// Only packages for Python
    #[arg(long)]
    pypi: bool,
    /// Only this number of packages, the same in each run
    #[arg(long, value_name = "NUMBER", conflicts_with = "names")]
    sample: Option<usize>,
    /// The server; without it, it is built
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Runs `cargo xtask packages`.
pub(crate) fn run(workspace: &CargoWorkspace, options: &PackageOptions) -> Result<ExitCode> {
    let server = match &options.server {
        Some(server) => {
            fs::canonicalize(server).with_context(|| format!("no server {}", server.display()))?
        }
        None => WorkspaceBuilder::new(workspace).build_server(BuildProfile::Dev)?,
    };
    let mut rows = lists::read(&workspace.root)?;
    rows.retain(|row| match row.registry {
        PackageRegistry::Npm => !options.pypi,
        PackageRegistry::Pypi => !options.npm,
    });
    let mut selection = "all";
    if let Some(count) = options.sample {
        selection = "sample";
        rows = lists::sample(rows, count);
    } else if !options.names.is_empty() {
        selection = "named";
        rows = lists::select_named(rows, &options.names)?;
    }
    let mut tally = TestCounts::default();
    let mut result = try_rows(workspace, &server, selection, &rows, &mut tally);
    if result.is_ok() && selection == "all" {
        result = write_tables(&workspace.root, &rows);
    }
    println!("\n{tally}");
    result.map(|()| ExitCode::SUCCESS)
}

/// Runs the test step, with a sample.
pub(crate) fn test(
    workspace: &CargoWorkspace,
    server: &Path,
    tally: &mut TestCounts,
) -> Result<()> {
    let rows = lists::sample(lists::read(&workspace.root)?, SAMPLE_SIZE);
    try_rows(workspace, server, "sample", &rows, tally)
}

/// Tries each row, and prints its outcome. Fails if one of them contradicts its claim.
fn try_rows(
    workspace: &CargoWorkspace,
    server: &Path,
    selection: &str,
    rows: &[PackageRow],
    tally: &mut TestCounts,
) -> Result<()> {
    let folder = workspace.target.join("packages");
    let trials = PackageTrials {
        root: &workspace.root,
        server,
        machine: BuildEnvironment::new(workspace),
        projects: folder.join("projects"),
        home: folder.join("home"),
    };
    for folder in [&trials.projects, &trials.home] {
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let mut failed = Vec::new();
    let mut report = |outcome: RowOutcome<'_>| match outcome.contradiction {
        None => {
            tally.passed += 1;
            println!("{} {}", terminal::green("ok"), label(outcome.row));
        }
        Some(text) => {
            tally.failed += 1;
            failed.push(outcome.row.name.clone());
            println!("{} {}: {text}", terminal::red("FAILED"), label(outcome.row));
        }
    };
    for registry in [PackageRegistry::Npm, PackageRegistry::Pypi] {
        let rows: Vec<&PackageRow> = rows.iter().filter(|row| row.registry == registry).collect();
        if rows.is_empty() {
            continue;
        }
        println!("{}", terminal::bold(format!("\n{}", registry.title())));
        let name = format!("{}-{selection}", registry.key());
        trials.run(registry, &name, &rows, &mut report)?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        let mut names = failed.join(", ");
        names.insert_str(0, "not as listed: ");
        eprintln!("{} {names}", terminal::red("error:"));
        bail!("{} packages are {names}", failed.len())
    }
}

/// Writes the tables of the registries of which all rows were tried.
fn write_tables(root: &Path, rows: &[PackageRow]) -> Result<()> {
    for registry in [PackageRegistry::Npm, PackageRegistry::Pypi] {
        let rows: Vec<&PackageRow> = rows.iter().filter(|row| row.registry == registry).collect();
        if rows.is_empty() {
            continue;
        }
        let (pure, working) = page::count_pure(&rows);
        println!(
            "{}: {working} of {pure} pure packages work",
            registry.title()
        );
        if working * 5 < pure * 4 {
            bail!(
                "fewer than four in five pure packages of {} work",
                registry.title()
            );
        }
        page::write(root, registry, &rows)?;
    }
    println!("wrote {}", page::PAGE);
    Ok(())
}

/// Returns the name and version of a row.
fn label(row: &PackageRow) -> String {
    let kind = if row.is_client() { " as a client" } else { "" };
    format!("{} {}{kind}", row.name, row.version)
}
