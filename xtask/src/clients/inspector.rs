//! The official inspector's command line, which says what a server does that no schema allows.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::build::Built;
use crate::command;
use crate::serving::Server;
use crate::tally::Tally;
use crate::terminal;

/// What it asks.
const QUESTIONS: [&[&str]; 3] = [
    &["--method", "tools/list"],
    &["--method", "tools/call", "--tool-name", "calculate_sum", "--tool-arg", "numbers=[1,2.5]"],
    &["--method", "tools/call", "--tool-name", "test_multiple_content_types"],
];

/// Asks everything by all rules and all transports.
pub(super) fn run(installed: &Path, built: &Built, tally: &mut Tally) -> Result<()> {
    let program = installed.join("node/node_modules/.bin/mcp-inspector");
    let root = tempfile::tempdir()?;
    let plugins = root.path().join("plugins");
    fs::create_dir(&plugins)?;
    fs::copy(built.plugins.join("calculator.wasm"), plugins.join("calculator.wasm"))?;
    fs::copy(built.guests.join("conformance.wasm"), plugins.join("conformance.wasm"))?;
    let server = Server::start(&built.server, &plugins, root.path())?;
    // It starts a program by its name alone.
    let program_over_stdio = root.path().join("serve");
    let line = format!("#!/bin/sh\nexec '{}' serve --plugins '{}'\n", built.server.display(), plugins.display());
    fs::write(&program_over_stdio, line)?;
    fs::set_permissions(&program_over_stdio, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let program_over_stdio = program_over_stdio.display().to_string();
    let sse = server.url.replace("/mcp", "/sse");
    let mut failed = 0;
    for (era, transport, target) in [
        ("legacy", "stdio", &program_over_stdio),
        ("modern", "stdio", &program_over_stdio),
        ("auto", "stdio", &program_over_stdio),
        ("legacy", "http", &server.url),
        ("modern", "http", &server.url),
        ("auto", "http", &server.url),
        ("legacy", "sse", &sse),
    ] {
        println!("{}", terminal::stdout().bold(format!("\nThe inspector, {era} over {transport}")));
        for question in QUESTIONS {
            let mut inspector = Command::new(&program);
            inspector.arg("--cli").arg(target).args(["--transport", transport, "--protocol-era", era, "--strict"]);
            inspector.args(question).env("XDG_CACHE_HOME", root.path().join("cache"));
            let what = question.join(" ");
            match command::output(&mut inspector) {
                Ok(_) => {
                    tally.passed += 1;
                    println!("ok      {what}");
                }
                Err(error) => {
                    tally.failed += 1;
                    failed += 1;
                    println!("FAILED  {what}: {error:#}");
                }
            }
        }
    }
    if failed == 0 { Ok(()) } else { bail!("{failed} failed") }
}
