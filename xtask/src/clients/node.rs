//! The official TypeScript client, on Node.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Folders, Script, install_once, read, require};
use crate::command;

/// What to do about a Node that is missing or old.
const ADVICE: &str = "install Node.js 20 or newer, with npm";

/// What `npm ci` installs by.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The script and what it reads: Node looks for packages beside the script, so it runs where they are installed.
const SCRIPTS: [&str; 3] = ["client.mjs", "png.mjs", "calls.json"];

/// Installs what the client's script needs.
pub(super) fn install(folders: &Folders) -> Result<Script> {
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("the TypeScript client needs node; {ADVICE}"))?;
    require(&version, (20, 0), ADVICE).context("node")?;
    let installed = folders.installed.join("node");
    fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
    for name in MANIFESTS.iter().chain(&SCRIPTS) {
        fs::copy(folders.source.join(name), installed.join(name)).with_context(|| format!("failed to copy {name}"))?;
    }
    let inputs = MANIFESTS.map(|name| read(&folders.source.join(name))).into_iter().collect::<Result<String>>()?;
    install_once(&installed.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing the official TypeScript client");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&installed);
        command::run(&mut npm).with_context(|| format!("failed to install the TypeScript client; {ADVICE}"))
    })?;
    Ok(Script { program: "node".into(), args: vec![installed.join("client.mjs").into()] })
}
