//! Tests `mcpdo` of the MCP Inspector. It keeps its connections open, so it receives updates, and a
//! user can respond to requests of the server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anstream::println;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use toolbay_testkit::command;
use toolbay_testkit::terminal;

use crate::tally::TestCounts;

const WATCHED_RESOURCE: &str = "test://watched-resource";

/// Timeout for an update, on a busy machine.
const UPDATE_TIMEOUT: Duration = Duration::from_mins(1);

/// A request to the server, the responses to its elicitations in order, and a part of the expected
/// output.
type RequestScenario = (
    &'static [&'static str],
    &'static [&'static [&'static str]],
    &'static str,
);

const REQUEST_SCENARIOS: [RequestScenario; 11] = [
    (
        &[
            "prompts/complete",
            "--complete-ref-type=ref/prompt",
            "--complete-ref=test_prompt_with_arguments",
            "--complete-arg-name=arg1",
            "--complete-arg-value=par",
        ],
        &[],
        "\"party\"",
    ),
    (
        &[
            "roots/set",
            "--roots-json",
            r#"[{"uri":"file:///home/ada"}]"#,
        ],
        &[],
        "file:///home/ada",
    ),
    (
        &["tools/call", "test_input_required_result_list_roots"],
        &[],
        "Roots: file:///home/ada",
    ),
    (
        &["tools/call", "test_elicitation", "message:=Who?"],
        &[&["username:=Ada", "email:=a@b.example"]],
        "action=accept",
    ),
    (
        &["tools/call", "test_elicitation", "message:=Who?"],
        &[&["--decline"]],
        "action=decline",
    ),
    (
        &["tools/call", "test_elicitation", "message:=Who?"],
        &[&["--cancel"]],
        "action=cancel",
    ),
    (
        &["tools/call", "test_elicitation_url"],
        &[&["--done"]],
        "action=accept",
    ),
    (
        &["tools/call", "test_elicitation_url"],
        &[&["--cancel"]],
        "action=cancel",
    ),
    (
        &["tools/call", "test_input_required_result_multi_round"],
        &[&["name:=Ada"], &["color:=red"]],
        r#"{\"name\":\"Ada\"} action=accept, content={\"color\":\"red\"}"#,
    ),
    (
        &["prompts/get", "test_input_required_result_prompt"],
        &[&["context:=tea"]],
        "Use this context: tea",
    ),
    (
        &["resources/read", "test://greeting/Hello"],
        &[&["name:=Ada"]],
        "Hello, Ada!",
    ),
];

/// The `mcpdo` program, whose files and daemon are below a folder. Dropping it stops the daemon.
pub(super) struct McpdoProgram {
    program: PathBuf,
    folder: PathBuf,
}

impl McpdoProgram {
    pub(super) fn new(installed: &Path, folder: &Path) -> Self {
        Self {
            program: installed.join("node/node_modules/.bin/mcpdo"),
            folder: folder.to_owned(),
        }
    }

    /// Runs all requests with the server at `target`, which is a program or a URL.
    pub(super) fn run_scenarios(
        &self,
        era: &str,
        transport: &str,
        target: &str,
        tally: &mut TestCounts,
    ) -> Result<()> {
        println!(
            "{}",
            terminal::bold(format!("\nThe inspector's mcpdo, {era} over {transport}"))
        );
        self.output(&["connect", target, "--transport", transport, "--era", era])?;
        // A connection without a name has the name of its target.
        let connection = ["--connection", target];
        let mut failed = 0;
        let mut check = |what: String, result: Result<()>| match result {
            Ok(()) => {
                tally.passed += 1;
                println!("ok      {what}");
            }
            Err(error) => {
                tally.failed += 1;
                failed += 1;
                println!("FAILED  {what}: {error:#}");
            }
        };
        check(
            format!("resources/subscribe {WATCHED_RESOURCE}"),
            self.check_resource_update(connection),
        );
        for (question, answers, shown) in REQUEST_SCENARIOS {
            let what = [&[question], answers].concat().concat().join(" ");
            check(
                what,
                self.run_scenario(connection, question, answers, shown),
            );
        }
        self.output(&["disconnect", target])?;
        ensure!(failed == 0, "{failed} failed");
        Ok(())
    }

    fn run_scenario(
        &self,
        connection: [&str; 2],
        question: &[&str],
        answers: &[&[&str]],
        shown: &str,
    ) -> Result<()> {
        let mut said = self.output(&[&connection, question].concat())?;
        for answer in answers {
            let value: Value =
                serde_json::from_str(&said).with_context(|| format!("not JSON: {said}"))?;
            let id = value
                .pointer("/elicitationPending/elicitationId")
                .and_then(Value::as_str);
            let id = id.with_context(|| format!("nothing is asked: {said}"))?;
            said = self.output(&[&connection, &["elicitation/respond", id], *answer].concat())?;
        }
        ensure!(said.contains(shown), "there is no {shown} in {said}");
        Ok(())
    }

    /// Subscribes to a resource, triggers an update, and waits until `mcpdo` prints it.
    fn check_resource_update(&self, connection: [&str; 2]) -> Result<()> {
        let mut command =
            self.command(&[&connection[..], &["resources/subscribe", WATCHED_RESOURCE]].concat());
        let (mut subscriber, lines) = spawn_and_read_lines(&mut command)?;
        let told = || -> Result<()> {
            wait_for_line(&lines, "\"subscribed\"")?;
            self.output(
                &[
                    &connection[..],
                    &["tools/call", "test_trigger_resource_update"],
                ]
                .concat(),
            )?;
            wait_for_line(&lines, "\"resources/updated\"")?;
            wait_for_line(&lines, WATCHED_RESOURCE)
        };
        let told = told();
        subscriber.kill()?;
        subscriber.wait()?;
        told
    }

    fn output(&self, args: &[&str]) -> Result<String> {
        command::output(&mut self.command(args))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--format", "json"]).args(args);
        command
            .env("HOME", &self.folder)
            .env("MCP_INSPECTOR_DAEMON_DIR", self.folder.join("daemon"));
        // `mcpdo` requires a token of 256 bits. No other client can reach this daemon.
        command.env("MCP_INSPECTOR_DAEMON_TOKEN", "t".repeat(43));
        // The test has no secrets, and `mcpdo` must not access a keychain.
        command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
        command
    }
}

impl Drop for McpdoProgram {
    fn drop(&mut self) {
        drop(self.output(&["daemon", "stop"]));
    }
}

/// Starts a command and returns the process and the lines that it prints.
fn spawn_and_read_lines(command: &mut Command) -> Result<(Child, Receiver<String>)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().context("the output is not piped")?);
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    Ok((child, receive))
}

/// Waits for a line that contains `part`.
fn wait_for_line(lines: &Receiver<String>, part: &str) -> Result<()> {
    while !lines
        .recv_timeout(UPDATE_TIMEOUT)
        .with_context(|| format!("there was no {part}"))?
        .contains(part)
    {}
    Ok(())
}
