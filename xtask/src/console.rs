//! The console in a browser, and the dashboard as Prometheus answers it, installed into `target/console`, against the real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::workspace::Workspace;

use crate::clients::{CHECKS, copy, require};
use crate::prometheus;
use crate::tally::Tally;

/// What to do about a Node that is missing or old.
const ADVICE: &str = "install Node.js 20.11 or newer, with npm";

/// What `npm ci` installs by.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts. Node looks for packages beside them, so they run where these are installed.
const FILES: [&str; 5] = ["console.mjs", "dashboard.mjs", "panels.mjs", "prometheus.mjs", "serving.mjs"];

/// Opens the console of a server with the sample plugins.
pub(crate) fn run(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    script(workspace, "console.mjs", &[&built.server, &built.plugins], tally)
}

/// Has Prometheus read the metrics of a server, and asks it every query of the dashboard.
pub(crate) fn dashboard(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    let programs = prometheus::install(workspace)?;
    let docs = workspace.root.join("docs/src");
    script(workspace, "dashboard.mjs", &[&built.server, &built.plugins, &built.guests, &programs, &docs], tally)
}

/// Runs one of the scripts, and counts what it checks.
fn script(workspace: &Workspace, name: &str, args: &[&PathBuf], tally: &mut Tally) -> Result<()> {
    let installed = workspace.target.join("console");
    install(&workspace.root.join("tests"), &installed)?;
    let mut node = Command::new("node");
    node.arg(installed.join(name)).args(args);
    tally.count_lines(&mut node)
}

/// Installs the browser and the packages that the script needs, beside the script: Node looks for them there.
fn install(tests: &Path, installed: &Path) -> Result<()> {
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("the console is opened by a script for node; {ADVICE}"))?;
    require(&version, "20.11", ADVICE).context("node")?;
    fs::create_dir_all(installed).with_context(|| format!("failed to create {}", installed.display()))?;
    let source = tests.join("console");
    // The browser is the one that shows views.
    let files = MANIFESTS.iter().chain(&FILES).map(|name| source.join(name));
    copy(files.chain([tests.join("apps/browser.mjs"), tests.join(CHECKS)]), installed)?;
    let read = |name: &str| fs::read_to_string(source.join(name)).with_context(|| format!("failed to read {name}"));
    let inputs = MANIFESTS.map(read).into_iter().collect::<Result<String>>()?;
    once(&installed.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing Chromium and axe");
        // Unpacked again from what is installed.
        match fs::remove_dir_all(installed.join("chromium")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(installed);
        command::run(&mut npm).with_context(|| format!("failed to install what opens the console; {ADVICE}"))
    })
}
