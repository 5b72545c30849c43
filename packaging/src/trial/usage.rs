//! The steps of a new user: create a folder, call a tool, and let a client start the server.

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use toolbay_testkit::message::{is_error, result_text};
use toolbay_testkit::{DEADLINE, ProgramLog, SharedConnection, UnclaimedPolicy, command, revision};

use super::installed::Installed;
use super::room::Room;

/// The tool that is called, its arguments and its result.
const TOOL: &str = "calculate_sum";
const ARGUMENTS: &str = r#"{"a": 2, "b": 3}"#;
const ANSWER: &str = "5";

/// The folder that `toolbay init` creates.
const FOLDER: &str = "tools";

/// The exit code of an invalid configuration.
const BAD_CONFIGURATION: i32 = 64;

/// The measurements.
pub(super) struct Used {
    /// Time from the first command until the response to the first call.
    pub(super) call: Duration,
    /// Time from the start of a server until its response to a call.
    pub(super) session: Duration,
    /// Number of checks that passed.
    pub(super) checks: usize,
}

/// Runs all steps. `version` is the version that the program must report.
pub(super) fn run(installed: &Installed, room: &Room, version: &str) -> Result<Used> {
    let mut checks = 0;
    let mut ok = |what: &str| {
        println!("ok      {what}");
        checks += 1;
    };
    let began = Instant::now();
    if !installed.is_furnished {
        let made = command::output(&mut start(
            installed,
            room,
            &["init", FOLDER, "--samples", "all"],
        ))?;
        ensure!(
            made.contains("plugins/calculator.wasm"),
            "`toolbay init` said:\n{made}"
        );
    }
    let answer = command::output(&mut inside(installed, room, &["call", TOOL, ARGUMENTS]))?;
    let call = began.elapsed();
    ensure!(
        answer.contains(ANSWER),
        "the first call was answered with:\n{answer}"
    );
    ok("a tool can be called on the command line");

    let said = command::output(&mut start(installed, room, &["--version"]))?;
    ensure!(
        said.trim().ends_with(version),
        "expected version {version}, not {said:?}"
    );
    ok("it has the version of the release");

    let session = session(installed, room)?;
    ok("a client can start it, list its tools and call one, and it ends when the client goes");

    let code = start(installed, room, &["list", "--config", "nowhere.toml"])
        .output()?
        .status
        .code();
    ensure!(
        code == Some(BAD_CONFIGURATION),
        "expected exit code {BAD_CONFIGURATION}, not {code:?}"
    );
    ok("its exit code gets through");

    let status = stopped(installed, room)?;
    ensure!(status.success(), "after SIGTERM, it ended with {status}");
    ok("SIGTERM gets through");
    Ok(Used {
        call,
        session,
        checks,
    })
}

/// Runs a session over standard input and output.
fn session(installed: &Installed, room: &Room) -> Result<Duration> {
    let log = ProgramLog::default();
    let connection = SharedConnection::start(
        inside(installed, room, &["serve"]),
        UnclaimedPolicy::Check,
        log.line_handler(),
    )?;
    let talk = || -> Result<Duration> {
        connection.initialize(revision::NEWEST_SESSION_REVISION)?;
        connection.wait_until_listed(DEADLINE, |tools| tools.iter().any(|tool| tool == TOOL))?;
        let answer = connection
            .open_mailbox()
            .call_and_wait(TOOL, &json!({"a": 2, "b": 3}))?;
        let took = answer
            .received_at
            .saturating_duration_since(connection.process().start_time);
        let result = answer
            .message
            .map_err(|refusal| anyhow::anyhow!("the call was refused: {refusal}"))?;
        ensure!(
            !is_error(&result) && result_text(&result).contains(ANSWER),
            "the call was answered with {result}"
        );
        Ok(took)
    };
    let took = talk().with_context(|| format!("the log:\n{}", log.tail(20)))?;
    let (status, _) = connection.stop(DEADLINE)?;
    ensure!(
        status.success(),
        "it ended with {status}:\n{}",
        log.tail(20)
    );
    Ok(took)
}

/// Starts a server and sends it a signal to stop.
fn stopped(installed: &Installed, room: &Room) -> Result<ExitStatus> {
    let log = ProgramLog::default();
    let service = installed.service.as_ref().map(|program| Installed {
        words: vec![program.clone()],
        variables: installed.variables.clone(),
        ..Installed::default()
    });
    let serve = inside(service.as_ref().unwrap_or(installed), room, &["serve"]);
    let mut connection =
        SharedConnection::start(serve, UnclaimedPolicy::Check, log.line_handler())?;
    connection.initialize(revision::NEWEST_SESSION_REVISION)?;
    connection.process().terminate()?;
    // Its input stays open, so only the signal can have stopped it.
    match connection.process_mut().wait_for_exit(DEADLINE) {
        Ok(status) => Ok(status),
        Err(error) => bail!("{error:#}; the log:\n{}", log.tail(20)),
    }
}

/// Returns a command for the program in its user's working directory.
fn start(installed: &Installed, room: &Room, args: &[&str]) -> Command {
    let (program, before) = installed
        .words
        .split_first()
        .map_or(("", &[][..]), |(one, rest)| (one.as_str(), rest));
    let mut command = room.command(program);
    command.args(before).args(args).envs(
        installed
            .variables
            .iter()
            .map(|(name, value)| (name, value)),
    );
    command
}

/// Returns a command for the program in the folder that it created.
fn inside(installed: &Installed, room: &Room, args: &[&str]) -> Command {
    let mut command = start(installed, room, args);
    if !installed.is_furnished {
        command.current_dir(room.work().join(FOLDER));
    }
    command
}
