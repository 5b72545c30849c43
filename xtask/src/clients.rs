//! The clients that people have, installed into `target/clients` and run unmodified against the real server.

mod conversation;
mod copied;
mod folders;
mod go;
mod inspector;
mod java;
mod mcpdo;
mod models;
mod node;
mod python;
mod rust;
mod script;
mod version;

use std::process::Command;

use anstream::{eprintln, println};
use anyhow::{Result, anyhow};
use toolbay_testkit::build::Built;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

pub(crate) use self::copied::{CHECKS, copy};
use self::folders::Folders;
pub(crate) use self::version::require;
use crate::tally::Tally;

/// Runs each client in each of its conversations. One that cannot be installed is a failure, and the others still run.
pub(crate) fn run(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    let folders = Folders::of(workspace)?;
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
            if let Err(error) = script.run(*conversation, built, tally) {
                // Whatever stopped it is a failure, counted by the script or not.
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
    if failures.is_empty() { Ok(()) } else { Err(anyhow!("{}", failures.join("; "))) }
}

/// A script of `tests/clients` with both official TypeScript clients at hand.
pub(crate) fn node_script(workspace: &Workspace, name: &str) -> Result<Command> {
    let mut node = Command::new("node");
    node.arg(node::environment(&Folders::of(workspace)?)?.join(name));
    Ok(node)
}

/// A script of `tests/clients` with the official Python client at hand.
pub(crate) fn python_script(workspace: &Workspace, name: &str) -> Result<Command> {
    let folders = Folders::of(workspace)?;
    let mut python = Command::new(python::environment(&folders)?);
    // Unbuffered, so that each check shows as it is made; and no byte code beside the sources.
    python.args(["-u", "-B"]).arg(folders.source.join(name));
    Ok(python)
}
