//! Tests the views of plugins (MCP Apps) in a browser against the real server. The browser and the
//! scripts are installed into `target/apps`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result, anyhow};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::clients::{CHECKS_SCRIPT, copy_into, require_version};
use crate::tally::TestCounts;

/// Advice for the user if Node.js is missing or too old.
const NODE_ADVICE: &str = "install Node.js 20.11 or newer, with npm";

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

/// The scripts and pages. They are copied to the installation folder, because Node resolves
/// packages relative to the script.
const VIEW_FILES: [&str; 7] = [
    "apps.mjs",
    "browser.mjs",
    "sites.mjs",
    "host.html",
    "host.js",
    "sandbox.html",
    "probe.html",
];

/// The plugin whose view tries to access other plugins.
const LIBRARY_PLUGIN: &str = "library.wasm";

/// The ways in which the client negotiates the revision. Hosts of views use old and new revisions.
const NEGOTIATION_MODES: [&str; 2] = ["legacy", "auto"];

/// Tests the views of the sample plugins and of a guest.
pub(crate) fn run(
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    let installed = workspace.target.join("apps");
    install(&workspace.root.join("tests"), &installed)?;
    let mut failures = Vec::new();
    for mode in NEGOTIATION_MODES {
        println!("{}", terminal::bold(format!("\nViews in Chromium, {mode}")));
        let mut node = Command::new("node");
        node.arg(installed.join("apps.mjs"));
        node.args([
            Path::new(mode),
            &built.server,
            &built.plugins,
            &built.guests.join(LIBRARY_PLUGIN),
        ]);
        let counted = tally.run_and_print(&mut node);
        if let Err(error) = counted {
            failures.push(format!("{mode}: {error:#}"));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", failures.join("; ")))
    }
}

/// Installs the browser and the packages that the scripts need.
fn install(tests: &Path, installed: &Path) -> Result<()> {
    let source = tests.join("apps");
    let version = command::output(Command::new("node").arg("--version"))
        .with_context(|| format!("views are shown by scripts for node; {NODE_ADVICE}"))?;
    require_version(&version, "20.11", NODE_ADVICE).context("node")?;
    fs::create_dir_all(installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    let files = MANIFESTS
        .iter()
        .chain(&VIEW_FILES)
        .map(|name| source.join(name));
    copy_into(files.chain([tests.join(CHECKS_SCRIPT)]), installed)?;
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
            println!("Installing Chromium and the official bridge of MCP Apps");
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
                .with_context(|| format!("failed to install what shows views; {NODE_ADVICE}"))
        },
    )
}
