//! Tests the console in a browser, and the dashboard with Prometheus, against the real server. The
//! browser and the scripts are installed into `target/console`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::clients::{CHECKS_SCRIPT, copy_into, require_version};
use crate::prometheus;
use crate::tally::TestCounts;

/// Advice for the user if Node.js is missing or too old.
const NODE_ADVICE: &str = "install Node.js 20.11 or newer, with npm";

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts. They are copied to the installation folder, because Node resolves packages relative
/// to the script.
const SCRIPT_FILES: [&str; 5] = [
    "console.mjs",
    "dashboard.mjs",
    "panels.mjs",
    "prometheus.mjs",
    "serving.mjs",
];

/// Tests the console of a server with the sample plugins.
pub(crate) fn run(
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    run_script(
        workspace,
        "console.mjs",
        &[&built.server, &built.plugins],
        tally,
    )
}

/// Starts Prometheus, which collects the metrics of a server, and runs every query of the
/// dashboard.
pub(crate) fn run_dashboard(
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    let programs = prometheus::install(workspace)?;
    let docs = workspace.root.join("docs/src");
    run_script(
        workspace,
        "dashboard.mjs",
        &[
            &built.server,
            &built.plugins,
            &built.guests,
            &programs,
            &docs,
        ],
        tally,
    )
}

/// Runs a script and counts its checks.
fn run_script(
    workspace: &CargoWorkspace,
    name: &str,
    args: &[&PathBuf],
    tally: &mut TestCounts,
) -> Result<()> {
    let installed = workspace.target.join("console");
    install(&workspace.root.join("tests"), &installed)?;
    let mut node = Command::new("node");
    node.arg(installed.join(name)).args(args);
    tally.run_and_print(&mut node)
}

/// Installs the browser and the packages next to the scripts.
fn install(tests: &Path, installed: &Path) -> Result<()> {
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("the console is opened by a script for node; {NODE_ADVICE}"))?;
    require_version(&version, "20.11", NODE_ADVICE).context("node")?;
    fs::create_dir_all(installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    let source = tests.join("console");
    // The module that starts the browser is shared with the tests of views.
    let files = MANIFESTS
        .iter()
        .chain(&SCRIPT_FILES)
        .map(|name| source.join(name));
    copy_into(
        files.chain([tests.join("apps/browser.mjs"), tests.join(CHECKS_SCRIPT)]),
        installed,
    )?;
    let read = |name: &str| {
        fs::read_to_string(source.join(name)).with_context(|| format!("failed to read {name}"))
    };
    let inputs = MANIFESTS
        .map(read)
        .into_iter()
        .collect::<Result<String>>()?;
    run_once(
        &installed.join("node_modules/.toolbay-stamp"),
        &inputs,
        || {
            println!("Installing Chromium and axe");
            // The script unpacks Chromium again from the installed package.
            match fs::remove_dir_all(installed.join("chromium")) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ])
            .current_dir(installed);
            command::run(&mut npm)
                .with_context(|| format!("failed to install what opens the console; {NODE_ADVICE}"))
        },
    )
}
