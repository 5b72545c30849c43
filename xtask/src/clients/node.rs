//! The official TypeScript clients, on Node.js.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

use super::conversation::{BOTH_ERAS, SESSIONS_AND_SSE};
use super::copied::copy_into;
use super::folders::ClientFolders;
use super::script::ClientScript;
use super::version::require_version;

/// Advice for the user if Node.js is missing or too old.
const NODE_ADVICE: &str = "install Node.js 20 or newer, with npm";

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts and the files that they read. They are copied to the installation folder, because
/// Node resolves packages relative to the script.
const SCRIPT_FILES: [&str; 9] = [
    "checks.mjs",
    "client.mjs",
    "client_v1.mjs",
    "servers.mjs",
    "serving.mjs",
    "surface.mjs",
    "tasks.mjs",
    "png.mjs",
    "calls.json",
];

/// Installs the clients and returns their scripts.
pub(super) fn install(folders: &ClientFolders) -> Result<Vec<ClientScript>> {
    let installed = install_packages(folders)?;
    let script = |client, name: &str, conversations| ClientScript {
        client,
        program: "node".into(),
        args: vec![installed.join(name).into()],
        conversations,
    };
    Ok(vec![
        script("The official TypeScript client", "client.mjs", BOTH_ERAS),
        script(
            "The TypeScript SDK of before",
            "client_v1.mjs",
            SESSIONS_AND_SSE,
        ),
    ])
}

/// Fails if Node.js is missing or too old.
pub(super) fn require_node() -> Result<()> {
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("the TypeScript clients need node; {NODE_ADVICE}"))?;
    require_version(&version, "20", NODE_ADVICE).context("node")
}

/// Installs the packages and the scripts, and returns their folder.
pub(super) fn install_packages(folders: &ClientFolders) -> Result<PathBuf> {
    require_node()?;
    let installed = folders.installed.join("node");
    fs::create_dir_all(&installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    copy_into(
        MANIFESTS
            .iter()
            .chain(&SCRIPT_FILES)
            .map(|name| folders.source.join(name)),
        &installed,
    )?;
    let inputs = MANIFESTS
        .map(|name| folders.read(name))
        .into_iter()
        .collect::<Result<String>>()?;
    run_once(
        &installed.join("node_modules/.toolbay-stamp"),
        &inputs,
        || {
            println!("Installing the official TypeScript clients");
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ])
            .current_dir(&installed);
            command::run(&mut npm)
                .with_context(|| format!("failed to install the TypeScript clients; {NODE_ADVICE}"))
        },
    )?;
    Ok(installed)
}
