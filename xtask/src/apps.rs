//! Tests the views of plugins (MCP Apps) in a browser against the real server. The browser and the
//! scripts are installed into `target/apps`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result, anyhow};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

use crate::clients::{CHECKS, copy, require};
use crate::tally::Tally;

/// Advice for the user if Node.js is missing or too old.
const ADVICE: &str = "install Node.js 20.11 or newer, with npm";

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts and pages. They are copied to the installation folder, because Node resolves
/// packages relative to the script.
const FILES: [&str; 7] = ["apps.mjs", "browser.mjs", "sites.mjs", "host.html", "host.js", "sandbox.html", "probe.html"];

/// The plugin whose view tries to access other plugins.
const LIBRARY: &str = "library.wasm";

/// The ways in which the client negotiates the revision. Hosts of views use old and new revisions.
const MODES: [&str; 2] = ["legacy", "auto"];

/// Tests the views of the sample plugins and of a guest.
pub(crate) fn run(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    let installed = workspace.target.join("apps");
    install(&workspace.root.join("tests"), &installed)?;
    let mut failures = Vec::new();
    for mode in MODES {
        println!("{}", terminal::bold(format!("\nViews in Chromium, {mode}")));
        let mut node = Command::new("node");
        node.arg(installed.join("apps.mjs"));
        node.args([Path::new(mode), &built.server, &built.plugins, &built.guests.join(LIBRARY)]);
        let counted = tally.count_lines(&mut node);
        if let Err(error) = counted {
            failures.push(format!("{mode}: {error:#}"));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(anyhow!("{}", failures.join("; "))) }
}

/// Installs the browser and the packages that the scripts need.
fn install(tests: &Path, installed: &Path) -> Result<()> {
    let source = tests.join("apps");
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("views are shown by scripts for node; {ADVICE}"))?;
    require(&version, "20.11", ADVICE).context("node")?;
    fs::create_dir_all(installed).with_context(|| format!("failed to create {}", installed.display()))?;
    let files = MANIFESTS.iter().chain(&FILES).map(|name| source.join(name));
    copy(files.chain([tests.join(CHECKS)]), installed)?;
    let read = |name: &str| fs::read_to_string(source.join(name)).with_context(|| format!("failed to read {name}"));
    let inputs = MANIFESTS.map(read).into_iter().collect::<Result<String>>()?;
    once(&installed.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing Chromium and the official bridge of MCP Apps");
        // The script unpacks Chromium again from the installed package.
        match fs::remove_dir_all(installed.join("chromium")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(installed);
        command::run(&mut npm).with_context(|| format!("failed to install what shows views; {ADVICE}"))
    })
}
