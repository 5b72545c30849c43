//! A server over standard input and output, whose only client sends hostile lines with an honest
//! request after each.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolbay_testkit::{
    CallerEvent, CallerMailbox, ObservableValue, ProgramLog, SharedConnection, TestFolder,
    TimedMessage, UnclaimedPolicy, message, revision,
};

use crate::attack::Ends;
use crate::honest::PATIENCE;
use crate::plugins::{REQUESTS, folder, large, serve};
use crate::session::{Line, Talk, repeated};
use crate::verdict::Verdict;
use crate::watch::Watch;

/// Maximum length of a line that the server reads, in bytes.
const LONGEST: usize = 4 << 20;

/// Maximum growth of the server beyond its requests, in KiB.
const MARGIN: u64 = 32 << 10;

/// Number of times that the client sends all requests to warm up the server.
const WARM_UP: usize = 20;

/// Receives the messages that are not responses to honest requests.
type Others = Receiver<TimedMessage<Result<Value, String>>>;

/// A server over standard input and output.
#[derive(Debug)]
pub(crate) struct Pipe {
    connection: SharedConnection,
    others: Others,
    log: ProgramLog,
    folder: TestFolder,
    watch: Watch,
    slowest: Duration,
}

impl Pipe {
    /// Starts a server.
    pub(crate) fn set(server: &Path) -> Result<Self> {
        let folder = folder(server)?;
        let (command, folder) = serve(&folder, &[]).into_parts();
        let log = ProgramLog::default();
        let (sender, others) = channel();
        let connection = SharedConnection::start(
            command,
            UnclaimedPolicy::Forward(sender),
            log.line_handler(),
        )?;
        connection.initialize(revision::NEWEST_SESSION_REVISION)?;
        let listed = |names: &[String]| {
            ["bystander", "echo", "spin"]
                .iter()
                .all(|name| names.iter().any(|own| own == name))
        };
        connection.wait_until_listed(PATIENCE, listed)?;
        let mailbox = connection.open_mailbox();
        for _ in 0..WARM_UP {
            for (tool, arguments) in large() {
                answer(&mailbox, mailbox.call(tool, &arguments)?)?;
            }
            ask(&connection, &mailbox, true)?;
        }
        let watch = Watch::new(connection.pid(), &log, REQUESTS + MARGIN)?;
        Ok(Self {
            connection,
            others,
            log,
            folder,
            watch,
            slowest: Duration::ZERO,
        })
    }

    /// Sends the lines of these talks, one after the other, and checks the server.
    ///
    /// # Errors
    ///
    /// The server violated a property.
    pub(crate) fn round(&mut self, talks: &[Talk]) -> Result<Ends> {
        let log = self.log.clone();
        self.attacked(talks)
            .with_context(|| format!("the server's log ends:\n{}", log.tail(20)))
    }

    fn attacked(&mut self, talks: &[Talk]) -> Result<Ends> {
        self.watch.begin()?;
        let mut ends = Ends::new();
        for talk in talks {
            self.talk(talk, &mut ends)
                .with_context(|| repeated(std::slice::from_ref(talk), talk.seed))?;
        }
        let connection = &self.connection;
        let others = &self.others;
        let mailbox = connection.open_mailbox();
        let ended = self.watch.end(|| {
            others.try_iter().for_each(drop);
            ask(connection, &mailbox, true).map(drop)
        });
        ended.with_context(|| repeated(talks, talks.first().map_or(0, |talk| talk.seed)))?;
        Ok(ends)
    }

    fn talk(&mut self, talk: &Talk, ends: &mut Ends) -> Result<()> {
        let verdict = Verdict::of_all(&self.folder.root().display().to_string());
        let mailbox = self.connection.open_mailbox();
        let mut open = Vec::new();
        // Late responses belong to the previous talk, which has ended.
        self.others.try_iter().for_each(drop);
        for line in &talk.lines {
            let bytes = line.text.bytes("none");
            open.extend(line.id.clone().filter(|_| must_be_answered(&bytes)));
            self.send(line, bytes)?;
            self.slowest = self.slowest.max(ask(&self.connection, &mailbox, false)?);
        }
        ask(&self.connection, &mailbox, true)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The first iterations read messages that have already arrived, the later ones wait for
            // missing responses.
            let wait = if open.is_empty() {
                Duration::ZERO
            } else {
                deadline.saturating_duration_since(Instant::now())
            };
            let Ok(TimedMessage { message: what, .. }) = self.others.recv_timeout(wait) else {
                break;
            };
            let what = what.map_err(anyhow::Error::msg)?;
            verdict.line(&what)?;
            let id = what.get("id").filter(|_| what.get("method").is_none());
            if let Some(at) = id.and_then(|id| open.iter().position(|open| open == id)) {
                open.remove(at);
            }
            *ends.entry(kind(&what)).or_default() += 1;
        }
        ensure!(open.is_empty(), "requests got no answer: {open:?}");
        Ok(())
    }

    /// Sends a line. A server that does not read is killed, which causes an error.
    fn send(&self, line: &Line, mut bytes: Vec<u8>) -> Result<()> {
        bytes.retain(|byte| *byte != b'\n');
        bytes.push(b'\n');
        let (first, rest) = bytes.split_at_checked(line.first).unwrap_or((&[], &bytes));
        let process = self.connection.process();
        let done = ObservableValue::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                if !done.wait_until(PATIENCE, |done| *done) {
                    // This fails if the server has exited, which is detected elsewhere.
                    drop(
                        Command::new("kill")
                            .args(["-KILL", &process.pid().to_string()])
                            .status(),
                    );
                }
            });
            let sent = process.write(first).and_then(|()| process.write(rest));
            done.update(|done| *done = true);
            sent.with_context(|| format!("the server ended, or did not read for {PATIENCE:?}"))
        })
    }

    /// Stops the server while calls run. It must exit successfully. Returns a summary.
    pub(crate) fn end(mut self) -> Result<String> {
        let connection = &self.connection;
        let others = &self.others;
        let mailbox = connection.open_mailbox();
        self.watch.until_threads_are_gone(|| {
            others.try_iter().for_each(drop);
            ask(connection, &mailbox, false).map(drop)
        })?;
        for _ in 0..3 {
            mailbox.call("spin", &json!({}))?;
        }
        connection.process().terminate()?;
        drop(mailbox);
        let status = self.connection.process_mut().wait_for_exit(PATIENCE)?;
        ensure!(
            status.code() == Some(0),
            "the server ended with {status}:\n{}",
            self.log.tail(20)
        );
        let log = self.log.text();
        ensure!(!log.contains("panicked"), "the server panicked:\n{log}");
        Ok(format!(
            "{}; the slowest pong took {:?}",
            self.watch.words(),
            self.slowest
        ))
    }
}

/// Sends honest requests, which must work after any hostile line: a ping, and with `calls` also
/// calls. Returns the duration of the ping.
fn ask(
    connection: &SharedConnection,
    mailbox: &CallerMailbox<'_>,
    calls: bool,
) -> Result<Duration> {
    let began = Instant::now();
    let pong = answer(mailbox, mailbox.request("ping", &json!({}))?).context("ping")?;
    let took = began.elapsed();
    ensure!(pong == json!({}), "ping gave {pong}");
    if calls {
        call(connection, mailbox)?;
    }
    Ok(took)
}

/// Calls a tool, which returns its arguments.
fn call(connection: &SharedConnection, mailbox: &CallerMailbox<'_>) -> Result<()> {
    let began = Instant::now();
    loop {
        let said = json!({"said": format!("{}", connection.ledger().request_count())});
        let result = answer(mailbox, mailbox.call("echo", &said)?).context("echo")?;
        // The client's own calls may occupy all of its queue places for a while.
        if message::error_kind(&result) == Some("busy") && began.elapsed() < PATIENCE {
            continue;
        }
        let echoed: Value = serde_json::from_str(&message::result_text(&result))
            .with_context(|| format!("echo gave {result}"))?;
        ensure!(
            echoed == said && !message::is_error(&result),
            "for {said}, echo gave {result}"
        );
        return Ok(());
    }
}

/// Returns the result of an honest request.
fn answer(mailbox: &CallerMailbox<'_>, asked: u64) -> Result<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match mailbox.next_event(deadline) {
            Some(CallerEvent::Response(id, answer)) if id == asked => return Ok(answer.message?),
            Some(CallerEvent::Response(..) | CallerEvent::Progress(_)) => {}
            Some(CallerEvent::ServerExited) => bail!("the server exited"),
            None => bail!("no answer came within {PATIENCE:?}"),
        }
    }
}

/// Returns whether this is JSON that the server accepts.
fn must_be_answered(line: &[u8]) -> bool {
    line.len() <= LONGEST && serde_json::from_slice::<&RawValue>(line).is_ok()
}

/// Returns the kind of a message.
fn kind(message: &Value) -> String {
    if message.is_array() {
        return "batch".to_owned();
    }
    if let Some(error) = message.get("error") {
        return format!("error {}", error.get("code").cloned().unwrap_or_default());
    }
    match message.get("result") {
        Some(result) if message::is_error(result) => {
            message::error_kind(result).unwrap_or("failed").to_owned()
        }
        Some(_) => "result".to_owned(),
        None => message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_must_be_answered() {
        assert!(must_be_answered(
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}"#
        ));
        assert!(!must_be_answered(
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":01}}"#
        ));
        assert!(!must_be_answered(b"\"\xff\""));
        assert!(!must_be_answered(&vec![b' '; LONGEST + 1]));
    }

    #[test]
    fn messages_are_of_kinds() {
        assert_eq!(
            kind(&json!({"id": 1, "error": {"code": -32600, "message": ""}})),
            "error -32600"
        );
        assert_eq!(
            kind(
                &json!({"id": 1, "result": {"isError": true, "_meta": {"dev.toolbay/error": "busy"}}})
            ),
            "busy"
        );
        assert_eq!(
            kind(&json!({"method": "notifications/progress"})),
            "notifications/progress"
        );
    }
}
