//! The clients that people have, installed into `target/clients` and run unmodified against the real server.

mod inspector;
mod node;
mod python;
mod rust;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::{eprintln, println};
use anyhow::{Context, Result, anyhow, ensure};
use toolbay_testkit::build::Built;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;
use crate::test;

/// One conversation of a client: how it finds out which revision the server speaks, and by which transport.
type Conversation = (&'static str, &'static str);

/// What a client of both eras does.
const BOTH_ERAS: &[Conversation] = &[("legacy", "stdio"), ("auto", "stdio"), ("legacy", "http"), ("auto", "http")];

/// What a client of both eras does that knows the transport of 2024 as well.
const EVERYTHING: &[Conversation] =
    &[("legacy", "stdio"), ("auto", "stdio"), ("legacy", "http"), ("auto", "http"), ("legacy", "sse")];

/// What a client does that knows sessions alone, and the transport of 2024.
const SESSIONS: &[Conversation] = &[("legacy", "stdio"), ("legacy", "http"), ("legacy", "sse")];

/// The plugin that the clients drop in.
const NEWCOMER: &str = "bare.wasm";

/// Where the clients' files come from, and where they are installed to.
struct Folders {
    /// In the repository.
    source: PathBuf,
    /// Under `target`.
    installed: PathBuf,
}

impl Folders {
    fn of(workspace: &Workspace) -> Result<Self> {
        let installed = workspace.target.join("clients");
        fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
        Ok(Self { source: workspace.root.join("tests/clients"), installed })
    }
}

/// A client's program, installed.
struct Script {
    client: &'static str,
    program: PathBuf,
    args: Vec<OsString>,
    conversations: &'static [Conversation],
}

/// Runs each client in each of its conversations. One that cannot be installed is a failure, and the others still run.
pub(crate) fn run(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    let folders = Folders::of(workspace)?;
    let mut failures = Vec::new();
    let mut scripts = Vec::new();
    let languages = [
        ("Python", python::install(&folders)),
        ("TypeScript", node::install(&folders)),
        ("Rust", rust::install(&folders)),
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
    if failures.is_empty() { Ok(()) } else { Err(anyhow!("{}", failures.join("; "))) }
}

impl Script {
    fn run(&self, (mode, transport): Conversation, built: &Built, tally: &mut Tally) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .args([mode, transport])
            .arg(&built.server)
            .arg(&built.plugins)
            .arg(built.guests.join(NEWCOMER));
        test::count(&mut command, tally, |line| {
            // Its own count is part of the total, and must not be mistaken for it.
            let count = Tally::of_line(line);
            if count.is_none() {
                println!("{line}");
            }
            count
        })
    }
}

/// A script of `tests/clients` with the official Python client at hand.
pub(crate) fn python_script(workspace: &Workspace, name: &str) -> Result<Command> {
    let folders = Folders::of(workspace)?;
    let mut python = Command::new(python::environment(&folders)?);
    // Unbuffered, so that each check shows as it is made; and no byte code beside the sources.
    python.args(["-u", "-B"]).arg(folders.source.join(name));
    Ok(python)
}

/// Refuses a version that is too old, and says what to install.
fn require(said: &str, least: &str, otherwise: &str) -> Result<()> {
    let found =
        toolbay_settings::version::found(said).with_context(|| format!("{said:?} is not a version; {otherwise}"))?;
    ensure!(toolbay_settings::version::is_at_least(&found, least)?, "version {found} is too old; {otherwise}");
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_too_old_is_refused() {
        assert!(require("3.10.2\n", "3.10", "").is_ok());
        assert!(require("v20.0.0", "20", "").is_ok());
        let error = require("3.9.18", "3.10", "install Python 3.10 or newer").unwrap_err();
        assert_eq!(error.to_string(), "version 3.9.18 is too old; install Python 3.10 or newer");
        assert!(require("many", "3.10", "").is_err());
    }
}
