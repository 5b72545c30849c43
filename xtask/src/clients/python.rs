//! The official Python client and fastmcp, in a separate virtual environment.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

use super::conversation::BOTH_ERAS_AND_SSE;
use super::folders::ClientFolders;
use super::script::ClientScript;
use super::version::require_version;

/// The requirements file that pip reads.
const REQUIREMENTS_FILE: &str = "requirements.txt";

/// Installs the clients and returns their scripts.
pub(super) fn install(folders: &ClientFolders) -> Result<Vec<ClientScript>> {
    let python = install_client_environment(folders)?;
    // Unbuffered (`-u`), so that each check is printed immediately. No byte code next to the
    // sources (`-B`).
    let script = |client, name: &str| ClientScript {
        client,
        program: python.clone(),
        args: vec!["-u".into(), "-B".into(), folders.source.join(name).into()],
        conversations: BOTH_ERAS_AND_SSE,
    };
    Ok(vec![
        script("The official Python client", "client.py"),
        script("fastmcp", "client_fastmcp.py"),
    ])
}

/// Installs the clients and returns the Python interpreter of their environment.
pub(super) fn install_client_environment(folders: &ClientFolders) -> Result<PathBuf> {
    install_environment(
        folders,
        "python",
        REQUIREMENTS_FILE,
        "the official Python client and fastmcp",
        "3.10",
    )
}

/// Creates a virtual environment with the packages of a requirements file, and returns its Python
/// interpreter. `least` is the minimum version of Python.
pub(super) fn install_environment(
    folders: &ClientFolders,
    name: &str,
    requirements: &str,
    what: &str,
    least: &str,
) -> Result<PathBuf> {
    let advice = format!("install Python {least} or newer so that `python3` runs it");
    let version = command::output(
        Command::new("python3").args(["-c", "import sys; print(sys.version.split()[0])"]),
    )
    .with_context(|| format!("the Python clients need python3; {advice}"))?;
    require_version(&version, least, &advice).context("python3")?;
    let environment = folders.installed.join(name);
    let python = environment.join("bin/python");
    run_once(
        &environment.join("stamp"),
        &format!("{version}{}", folders.read(requirements)?),
        || {
            println!("Installing {what}");
            command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
            .context("failed to make a virtual environment; on Debian and Ubuntu it needs the package python3-venv")?;
            command::run(
                Command::new(&python)
                    .args([
                        "-m",
                        "pip",
                        "install",
                        "--quiet",
                        "--disable-pip-version-check",
                        "--requirement",
                    ])
                    .arg(folders.source.join(requirements)),
            )
            .context("failed to install the Python packages")
        },
    )?;
    Ok(python)
}
