//! Tests the command-line interfaces of the official MCP Inspector. The interface for single
//! requests reports responses that violate the schema.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::terminal;

use super::mcpdo::McpdoProgram;
use crate::serving;
use crate::tally::TestCounts;

/// The requests, each with a part of the expected output.
const INSPECTOR_REQUESTS: [(&[&str], &str); 9] = [
    (
        &["--method", "tools/list", "--strict"],
        "test_multiple_content_types",
    ),
    (
        &[
            "--method",
            "tools/call",
            "--tool-name",
            "calculate_sum",
            "--tool-arg",
            "a=1",
            "--tool-arg",
            "b=2.5",
        ],
        "3.5",
    ),
    (
        &[
            "--method",
            "tools/call",
            "--tool-name",
            "test_multiple_content_types",
        ],
        "image/png",
    ),
    (&["--method", "prompts/list"], "test_prompt_with_arguments"),
    (
        &[
            "--method",
            "prompts/get",
            "--prompt-name",
            "test_prompt_with_arguments",
            "--prompt-args",
            "arg1=one",
            "arg2=two",
        ],
        "arg1='one', arg2='two'",
    ),
    (&["--method", "resources/list"], "test://static-text"),
    (
        &["--method", "resources/templates/list"],
        "test://template/{id}/data",
    ),
    (
        &[
            "--method",
            "resources/read",
            "--uri",
            "test://template/7/data",
        ],
        "Data for ID: 7",
    ),
    // The inspector has no roots and returns an empty list.
    (
        &[
            "--method",
            "tools/call",
            "--tool-name",
            "test_input_required_result_list_roots",
        ],
        "Roots: ",
    ),
];

/// The requests that require a capability that the inspector does not declare, each with a part of
/// the expected error.
const REFUSED_REQUESTS: [(&[&str], &str); 3] = [
    (
        &[
            "--method",
            "tools/call",
            "--tool-name",
            "test_elicitation_url",
        ],
        "not declared: elicitation",
    ),
    (
        &[
            "--method",
            "tools/call",
            "--tool-name",
            "test_sampling",
            "--tool-arg",
            "prompt=x",
        ],
        "not declared: sampling",
    ),
    (
        &[
            "--method",
            "prompts/get",
            "--prompt-name",
            "test_input_required_result_prompt",
        ],
        "not declared: elicitation",
    ),
];

/// Sends every request in every era and over every transport.
pub(super) fn run(installed: &Path, built: &BuildOutput, tally: &mut TestCounts) -> Result<()> {
    let program = installed.join("node/node_modules/.bin/mcp-inspector");
    let root = tempfile::tempdir()?;
    let plugins = root.path().join("plugins");
    fs::create_dir(&plugins)?;
    fs::copy(
        built.plugins.join("calculator.wasm"),
        plugins.join("calculator.wasm"),
    )?;
    fs::copy(
        built.guests.join("conformance.wasm"),
        plugins.join("conformance.wasm"),
    )?;
    let cache = root.path().join("cache");
    // The inspector lists the tools once, immediately after the start. With compiled plugins, all
    // tools are loaded by then, even on a slow machine.
    serving::compile_plugins(&built.server, &plugins, root.path())?;
    let server = serving::start(&built.server, &plugins, root.path())?;
    // The inspector starts a program without arguments, so a script adds them.
    let program_over_stdio = root.path().join("serve");
    let [cache, server_program, folder] =
        [&cache, &built.server, &plugins].map(|path| path.display());
    let line = format!(
        "#!/bin/sh\nXDG_CACHE_HOME='{cache}' exec '{server_program}' serve --plugins '{folder}'\n"
    );
    fs::write(&program_over_stdio, line)?;
    fs::set_permissions(
        &program_over_stdio,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let program_over_stdio = program_over_stdio.display().to_string();
    let url = server.url();
    let sse = format!("http://{}/sse", server.address);
    let mut failed = 0;
    for (era, transport, target) in [
        ("legacy", "stdio", &program_over_stdio),
        ("modern", "stdio", &program_over_stdio),
        ("auto", "stdio", &program_over_stdio),
        ("legacy", "http", &url),
        ("modern", "http", &url),
        ("auto", "http", &url),
        ("legacy", "sse", &sse),
    ] {
        println!(
            "{}",
            terminal::bold(format!("\nThe inspector, {era} over {transport}"))
        );
        let questions = INSPECTOR_REQUESTS.iter().map(|question| (question, true));
        for ((question, shown), answered) in
            questions.chain(REFUSED_REQUESTS.iter().map(|question| (question, false)))
        {
            let mut inspector = Command::new(&program);
            inspector.arg("--cli").arg(target).args([
                "--transport",
                transport,
                "--protocol-era",
                era,
            ]);
            inspector.args(*question);
            let what = question.join(" ");
            let problem = match command::output(&mut inspector) {
                Ok(text) if !answered => Some(format!("it is answered: {text}")),
                Err(error) if answered => Some(format!("{error:#}")),
                Ok(text) if !text.contains(shown) => Some(format!("there is no {shown} in {text}")),
                Err(error) if !format!("{error:#}").contains(shown) => Some(format!("{error:#}")),
                _ => None,
            };
            if let Some(problem) = problem {
                tally.failed += 1;
                failed += 1;
                println!("FAILED  {what}: {problem}");
            } else {
                tally.passed += 1;
                println!("ok      {what}");
            }
        }
    }
    let mcpdo = McpdoProgram::new(installed, root.path());
    for (era, transport, target) in [
        ("legacy", "stdio", &program_over_stdio),
        ("modern", "stdio", &program_over_stdio),
        ("legacy", "http", &url),
        ("modern", "http", &url),
    ] {
        if let Err(error) = mcpdo.run_scenarios(era, transport, target, tally) {
            failed += 1;
            println!("FAILED  {error:#}");
        }
    }
    if failed == 0 {
        Ok(())
    } else {
        bail!("{failed} failed")
    }
}
