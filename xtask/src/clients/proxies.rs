//! Tests nginx, `HAProxy` and Caddy as reverse proxies of the server, with the configurations from
//! the book.

use std::process::Command;

use anstream::println;
use anyhow::{Result, anyhow};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use super::copied::copy_into;
use super::folders::ClientFolders;
use super::frameworks;
use super::script::ADDED_PLUGIN;
use crate::debian::DebianPackage;
use crate::tally::TestCounts;

/// The packages of the proxies. Each program has the name of its package.
const PROXIES: [DebianPackage; 3] = [
    DebianPackage {
        name: "nginx",
        programs: &["nginx"],
        folder: "usr/sbin",
        with_libraries: true,
    },
    DebianPackage {
        name: "haproxy",
        programs: &["haproxy"],
        folder: "usr/sbin",
        with_libraries: true,
    },
    DebianPackage {
        name: "caddy",
        programs: &["caddy"],
        folder: "usr/bin",
        with_libraries: false,
    },
];

/// The script that connects to the server through a proxy.
const PROXY_SCRIPT: &str = "proxies.mjs";

/// The page of the book that contains the configurations.
const PROXIES_PAGE: &str = "docs/src/proxies.md";

/// Tests the proxies whose names `wanted` accepts with real servers. If a proxy cannot be
/// installed, prints that it is skipped.
pub(super) fn run(
    folders: &ClientFolders,
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    wanted: &dyn Fn(&str) -> bool,
    tally: &mut TestCounts,
) -> Result<()> {
    let mut failures = Vec::new();
    for proxy in PROXIES.iter().filter(|proxy| wanted(proxy.name)) {
        println!("{}", terminal::bold(format!("\n{} in front", proxy.name)));
        let programs = match proxy.install(&workspace.target.join(proxy.name)) {
            Ok(programs) => programs,
            Err(error) => {
                println!(
                    "{0} is skipped: this machine has no {0}, and cannot get its package: {error:#}",
                    proxy.name
                );
                continue;
            }
        };
        let installed = frameworks::install_node_packages(folders)?;
        copy_into(
            [folders.source.join("frameworks").join(PROXY_SCRIPT)],
            &installed,
        )?;
        let mut node = Command::new("node");
        node.arg(installed.join(PROXY_SCRIPT))
            .arg(proxy.name)
            .arg(programs.folder.join(proxy.name));
        node.arg(programs.libraries)
            .arg(workspace.root.join(PROXIES_PAGE));
        node.arg(&built.server)
            .arg(&built.plugins)
            .arg(built.guests.join(ADDED_PLUGIN));
        let failed = tally.failed;
        if let Err(error) = tally.run_and_print(&mut node) {
            tally.failed = tally.failed.max(failed + 1);
            failures.push(format!("{}: {error:#}", proxy.name));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", failures.join("; ")))
    }
}
