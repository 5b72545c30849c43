//! `toolbay approvals`: the calls that wait for an operator, and their answers, in a terminal.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueEnum};
use humantime::format_duration;
use toolbay_console::{
    ApprovalOutcome, ApprovalRequest, ApprovalResponse, WaitingCall, request_approvals,
};
use toolbay_model::text::clean_line;

use super::common::block_on;
use super::console::{choose_server, responding_servers};
use super::output::{print, print_json};

/// Maximum length of a printed name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Actions on waiting calls.
#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List the calls that wait, oldest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the question about a call, with its arguments and what the plugin can do
    Show {
        /// The number of the call in the list
        id: u64,
    },
    /// Answer the question about a call
    Answer {
        /// The number of the call in the list
        id: u64,
        /// Whether the call is allowed
        answer: OperatorDecision,
    },
}

/// The answer to the question whether a call is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OperatorDecision {
    /// The call runs
    Yes,
    /// The call fails
    No,
}

pub(super) fn run(command: Option<ApprovalsCommand>, pid: Option<u32>) -> anyhow::Result<ExitCode> {
    let command = command.unwrap_or(ApprovalsCommand::List { json: false });
    block_on(async {
        let server = choose_server(responding_servers().await, pid, "approvals")?;
        let request = match command {
            ApprovalsCommand::List { .. } => ApprovalRequest::List,
            ApprovalsCommand::Show { id } => ApprovalRequest::Show(id),
            ApprovalsCommand::Answer { id, answer } => ApprovalRequest::Answer {
                id,
                approve: answer == OperatorDecision::Yes,
            },
        };
        let response = request_approvals(&server.socket.path, request)
            .await
            .with_context(|| format!("the server {} did not respond", server.socket.pid))?;
        match (command, response) {
            (ApprovalsCommand::List { json: true }, ApprovalResponse::Waiting(calls)) => {
                print_json(&calls)?;
            }
            (ApprovalsCommand::List { .. }, ApprovalResponse::Waiting(calls)) => {
                print(&list_text(&calls, SystemTime::now()));
            }
            (ApprovalsCommand::Show { id }, ApprovalResponse::Waiting(calls)) => {
                let Some(call) = calls.first() else {
                    bail!("no call with the number {id} waits");
                };
                print(&question_text(call));
            }
            (ApprovalsCommand::Answer { id, answer }, ApprovalResponse::Answered(outcome)) => {
                print(answer_text(id, answer, outcome)?);
            }
            _ => bail!("the server {} sent another response", server.socket.pid),
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn list_text(calls: &[WaitingCall], now: SystemTime) -> String {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = |text: &str| clean_line(text, MAX_NAME_BYTES);
    if calls.is_empty() {
        return "no call waits for an operator\n".to_owned();
    }
    let mut text = String::new();
    for call in calls {
        let left = Duration::from_secs(call.expires_at.saturating_sub(now));
        let _ = writeln!(
            text,
            "{:>4}  {} of {}, by {}, for {} more",
            call.id,
            name(&call.tool),
            name(&call.plugin),
            name(&call.caller),
            format_duration(left)
        );
    }
    text.push_str("toolbay approvals show N prints a question; toolbay approvals answer N yes allows the call\n");
    text
}

fn question_text(call: &WaitingCall) -> String {
    let question = call.question.as_deref().unwrap_or_default();
    format!(
        "{question}\n\ntoolbay approvals answer {} yes allows {}.\n",
        call.id,
        clean_line(&call.covered_calls, MAX_NAME_BYTES)
    )
}

/// Returns the text about the outcome of an answer.
///
/// # Errors
///
/// The answer has no effect.
fn answer_text(
    id: u64,
    answer: OperatorDecision,
    outcome: ApprovalOutcome,
) -> anyhow::Result<&'static str> {
    Ok(match (outcome, answer) {
        (ApprovalOutcome::Done, OperatorDecision::Yes) => "allowed: the call continues\n",
        (ApprovalOutcome::Done, OperatorDecision::No) => "declined: the call has failed\n",
        (ApprovalOutcome::Outdated, _) => bail!(
            "the plugin or its grant has changed since the call was made, so it fails; its client can call again"
        ),
        (ApprovalOutcome::Suspended, _) => bail!("the plugin is disabled, so the call is rejected"),
        (ApprovalOutcome::Gone | ApprovalOutcome::Forbidden, _) => bail!(
            "no call with the number {id} waits: it was answered or cancelled, its question expired, or it never existed"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: u64, tool: &str) -> WaitingCall {
        WaitingCall {
            id,
            plugin: "notes".to_owned(),
            tool: tool.to_owned(),
            caller: "stdio".to_owned(),
            asked_at: 0,
            expires_at: 90,
            covered_calls: "this call".to_owned(),
            question: Some("Allow it?\n\n    | {}".to_owned()),
        }
    }

    #[test]
    fn waiting_calls_are_listed_one_per_line_whatever_their_names_are() {
        let now = UNIX_EPOCH + Duration::from_secs(30);
        insta::assert_snapshot!(list_text(&[call(7, "erase"), call(12, "a\n\u{1b}[31mb")], now), @r"
           7  erase of notes, by stdio, for 1m more
          12  a\nb of notes, by stdio, for 1m more
        toolbay approvals show N prints a question; toolbay approvals answer N yes allows the call
        ");
        assert_eq!(list_text(&[], now), "no call waits for an operator\n");
        let shown = question_text(&call(7, "erase"));
        assert!(
            shown.starts_with("Allow it?\n\n    | {}")
                && shown.ends_with("toolbay approvals answer 7 yes allows this call.\n"),
            "{shown:?}"
        );
    }

    #[test]
    fn an_answer_without_effect_is_an_error() {
        for outcome in [
            ApprovalOutcome::Gone,
            ApprovalOutcome::Outdated,
            ApprovalOutcome::Suspended,
        ] {
            assert!(answer_text(7, OperatorDecision::Yes, outcome).is_err());
        }
        let done = ApprovalOutcome::Done;
        assert!(
            answer_text(7, OperatorDecision::No, done)
                .unwrap()
                .starts_with("declined")
        );
    }
}
