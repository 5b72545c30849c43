//! `cargo xtask clients`: tests the real server with unmodified third-party clients, which are
//! installed into `target/clients`.

mod conversation;
mod copied;
mod folders;
mod frameworks;
mod go;
mod inspector;
mod java;
mod jvm;
mod mcpdo;
mod models;
mod node;
mod odd;
mod proxies;
mod python;
mod rust;
mod script;
mod version;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anstream::{eprintln, println};
use anyhow::{Result, anyhow};
use clap::Args;
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

pub(crate) use self::copied::{CHECKS_SCRIPT, copy_into};
use self::folders::ClientFolders;
pub(crate) use self::version::require_version;
use crate::build;
use crate::tally::TestCounts;

/// The clients to run.
#[derive(Args)]
pub(crate) struct ClientOptions {
    /// Run frameworks, bridges and reverse proxies as well, which takes long
    #[arg(long)]
    all: bool,
    /// Of these further ones, run only those whose names contain this text, and no other client;
    /// may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

/// Runs `cargo xtask clients`.
pub(crate) fn run_command(workspace: &CargoWorkspace, options: &ClientOptions) -> Result<ExitCode> {
    let built = build::build(workspace)?;
    let mut tally = TestCounts::default();
    let mut failures = Vec::new();
    if options.only.is_empty()
        && let Err(error) = run(workspace, &built, &mut tally)
    {
        failures.push(error);
    }
    if options.all || !options.only.is_empty() {
        let folders = ClientFolders::create(workspace)?;
        let wanted = |name: &str| {
            options.only.is_empty() || options.only.iter().any(|part| name.contains(part.as_str()))
        };
        failures.extend(frameworks::run(&folders, &built, &wanted, &mut tally).err());
        failures.extend(proxies::run(&folders, workspace, &built, &wanted, &mut tally).err());
    }
    for error in &failures {
        eprintln!("{} {error:#}", terminal::red("error:"));
    }
    println!("\n{tally}");
    Ok(if failures.is_empty() && tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs each client in each of its conversations. A client that cannot be installed counts as a
/// failure, and the other clients still run.
pub(crate) fn run(
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    let folders = ClientFolders::create(workspace)?;
    let mut failures = Vec::new();
    let mut scripts = Vec::new();
    let languages = [
        ("Python", python::install(&folders)),
        ("TypeScript", node::install(&folders)),
        ("Rust", rust::install(&folders)),
        ("Go", go::install(&folders)),
        ("Java", java::install(&folders)),
    ];
    for (language, installed) in languages {
        match installed {
            Ok(installed) => scripts.extend(installed),
            Err(error) => {
                eprintln!("{} {error:#}", terminal::red("error:"));
                tally.failed += 1;
                failures.push(format!("the {language} clients could not be installed"));
            }
        }
    }
    for script in &scripts {
        for conversation in script.conversations {
            let (mode, transport) = conversation;
            let name = format!("{}, {mode} over {transport}", script.client);
            println!("{}", terminal::bold(format!("\n{name}")));
            let failed = tally.failed;
            if let Err(error) = script.run_conversation(*conversation, built, tally) {
                // A script that stops early counts as a failure, even if it counted none.
                tally.failed = tally.failed.max(failed + 1);
                failures.push(format!("{name}: {error:#}"));
            }
        }
    }
    if let Err(error) = inspector::run(&folders.installed, built, tally) {
        failures.push(format!("the inspector: {error:#}"));
    }
    if let Err(error) = models::run(&folders, built, tally) {
        failures.push(format!("the converters of the APIs for models: {error:#}"));
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", failures.join("; ")))
    }
}

/// Returns a command for a script in `tests/clients`, with both official TypeScript clients
/// installed.
pub(crate) fn node_script(workspace: &CargoWorkspace, name: &str) -> Result<Command> {
    let mut node = Command::new("node");
    node.arg(node::install_packages(&ClientFolders::create(workspace)?)?.join(name));
    Ok(node)
}

/// Returns a command for a script in `tests/clients`, with the official Python client installed.
pub(crate) fn python_script(workspace: &CargoWorkspace, name: &str) -> Result<Command> {
    let folders = ClientFolders::create(workspace)?;
    let mut python = Command::new(python::install_client_environment(&folders)?);
    // Unbuffered (`-u`), so that each check is printed immediately. No byte code next to the
    // sources (`-B`).
    python.args(["-u", "-B"]).arg(folders.source.join(name));
    Ok(python)
}

/// Creates a virtual environment with the packages of `source/requirements.txt` in
/// `installed/name`, and returns its Python interpreter. `what` names the packages for the user.
pub(crate) fn python_environment(
    source: PathBuf,
    installed: PathBuf,
    name: &str,
    what: &str,
) -> Result<PathBuf> {
    let folders = ClientFolders { source, installed };
    python::install_environment(&folders, name, "requirements.txt", what, "3.10")
}
