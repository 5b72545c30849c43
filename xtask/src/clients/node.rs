//! The official TypeScript clients, on Node.js.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::once;

use super::conversation::{BOTH_ERAS, SESSIONS};
use super::copied::copy;
use super::folders::Folders;
use super::script::Script;
use super::version::require;

/// Advice for the user if Node.js is missing or too old.
const ADVICE: &str = "install Node.js 20 or newer, with npm";

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts and the files that they read. They are copied to the installation folder, because
/// Node resolves packages relative to the script.
const SCRIPTS: [&str; 9] = [
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
pub(super) fn install(folders: &Folders) -> Result<Vec<Script>> {
    let installed = environment(folders)?;
    let script = |client, name: &str, conversations| Script {
        client,
        program: "node".into(),
        args: vec![installed.join(name).into()],
        conversations,
    };
    Ok(vec![
        script("The official TypeScript client", "client.mjs", BOTH_ERAS),
        script("The TypeScript SDK of before", "client_v1.mjs", SESSIONS),
    ])
}

/// Fails if Node.js is missing or too old.
pub(super) fn is_new_enough() -> Result<()> {
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("the TypeScript clients need node; {ADVICE}"))?;
    require(&version, "20", ADVICE).context("node")
}

/// Installs the packages and the scripts, and returns their folder.
pub(super) fn environment(folders: &Folders) -> Result<PathBuf> {
    is_new_enough()?;
    let installed = folders.installed.join("node");
    fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
    copy(MANIFESTS.iter().chain(&SCRIPTS).map(|name| folders.source.join(name)), &installed)?;
    let inputs = MANIFESTS.map(|name| folders.read(name)).into_iter().collect::<Result<String>>()?;
    once(&installed.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing the official TypeScript clients");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&installed);
        command::run(&mut npm).with_context(|| format!("failed to install the TypeScript clients; {ADVICE}"))
    })?;
    Ok(installed)
}
