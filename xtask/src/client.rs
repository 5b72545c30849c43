//! A small MCP client over the standard streams of a real server, which remembers when everything came.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::server;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the server may take to end once its input has.
const GOODBYE: Duration = Duration::from_secs(10);

/// A server that was started, and the conversation with it.
pub(crate) struct Client {
    /// When the server was started.
    pub(crate) started: Instant,
    server: Child,
    /// Taken when the conversation ends.
    input: Option<ChildStdin>,
    messages: Inbox<Value>,
    log: Inbox<String>,
    requests: u64,
}

/// Something that came from the server.
#[derive(Clone, Debug)]
pub(crate) struct Arrived<T> {
    /// What.
    pub(crate) what: T,
    /// When.
    pub(crate) at: Instant,
}

/// What a tool answered, or the error that the call ended with.
pub(crate) type Answer = Result<Value, Refusal>;

/// A JSON-RPC error.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Its code.
    pub(crate) code: i64,
    /// Its message.
    pub(crate) message: String,
}

impl Client {
    /// Starts `server` in the folder `root` on the plugins in `root/plugins`,
    /// and reads along what it says and logs.
    pub(crate) fn start(server: &Path, root: &Path) -> Result<Self> {
        let started = Instant::now();
        let mut server =
            server::command(server, root).spawn().with_context(|| format!("failed to start {}", server.display()))?;
        let stdout = server.stdout.take().context("no standard output")?;
        let stderr = server.stderr.take().context("no standard error")?;
        Ok(Self {
            started,
            input: server.stdin.take(),
            server,
            messages: Inbox::of(stdout, |line| serde_json::from_str(line).ok()),
            log: Inbox::of(stderr, |line| Some(line.to_owned())),
            requests: 0,
        })
    }

    /// Shakes hands, and returns what the server said of itself.
    pub(crate) fn initialize(&mut self) -> Result<Arrived<Value>> {
        let answer = self.request("initialize", &server::hello("toolbay-demo"))?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let Ok(what) = answer.what else { bail!("initialize was answered with an error") };
        Ok(Arrived { what, at: answer.at })
    }

    /// The names of the tools that are offered now.
    pub(crate) fn tools(&mut self) -> Result<Vec<String>> {
        let answer = self.request("tools/list", &json!({}))?;
        let Ok(list) = answer.what else { bail!("tools/list was answered with an error") };
        let tools = list.get("tools").and_then(Value::as_array).context("tools/list has no tools")?;
        Ok(tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect())
    }

    /// Calls a tool and waits for its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Arrived<Answer>> {
        let id = self.begin_call(tool, arguments)?;
        self.answer(id)
    }

    /// Calls a tool; the answer is to be had by the id. The call's own id is its progress token.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> Result<u64> {
        let token = self.requests + 1;
        self.begin("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}))
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Arrived<Answer>> {
        let Arrived { what, at } = self
            .messages
            .wait_for(|message| message.get("id").and_then(Value::as_u64) == Some(id))
            .with_context(|| format!("request {id} was never answered"))?;
        Ok(Arrived { what: answer(what)?, at })
    }

    /// Waits for the next notification of this kind, and takes it.
    pub(crate) fn notification(&mut self, method: &str) -> Result<Arrived<Value>> {
        self.messages
            .wait_for(|message| message.get("method").is_some_and(|name| name == method))
            .with_context(|| format!("{method} never came"))
    }

    /// Waits for a line of the log, and takes it.
    pub(crate) fn log_line(&mut self, fits: impl FnMut(&String) -> bool) -> Result<Arrived<String>> {
        self.log.wait_for(fits).context("the log never said so")
    }

    /// The last lines of the log that nobody has taken.
    pub(crate) fn log_tail(&mut self, lines: usize) -> Vec<String> {
        self.log.gather();
        let kept = self.log.kept.iter().map(|line| line.what.clone());
        kept.skip(self.log.kept.len().saturating_sub(lines)).collect()
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Arrived<Answer>> {
        let id = self.begin(method, params)?;
        self.answer(id)
    }

    fn begin(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.requests += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}))?;
        Ok(self.requests)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the conversation has ended")?;
        let mut line = message.to_string();
        line.push('\n');
        input.write_all(line.as_bytes()).context("the server has gone")
    }
}

/// What a message that answers a request says.
pub(crate) fn answer(mut message: Value) -> Result<Answer> {
    if let Some(result) = message.get_mut("result") {
        return Ok(Ok(result.take()));
    }
    let error = message.get("error").context("an answer has neither result nor error")?;
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Err(Refusal { code, message }))
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input asks the server to go, the end of its output says that it has.
        drop(self.input.take());
        if !self.messages.ends_within(GOODBYE) {
            drop(self.server.kill());
        }
        drop(self.server.wait());
    }
}

/// What came from one stream: read by a thread of its own, kept until somebody asks for it.
struct Inbox<T> {
    arriving: Receiver<Arrived<T>>,
    kept: VecDeque<Arrived<T>>,
}

impl<T: Send + 'static> Inbox<T> {
    fn of(stream: impl Read + Send + 'static, read: impl Fn(&str) -> Option<T> + Send + 'static) -> Self {
        let (sender, arriving) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let at = Instant::now();
                let Some(what) = read(&line) else { continue };
                if sender.send(Arrived { what, at }).is_err() {
                    return;
                }
            }
        });
        Self { arriving, kept: VecDeque::new() }
    }

    /// Waits for the first that fits, and takes it; the others stay.
    fn wait_for(&mut self, mut fits: impl FnMut(&T) -> bool) -> Result<Arrived<T>> {
        if let Some(found) =
            self.kept.iter().position(|arrived| fits(&arrived.what)).and_then(|at| self.kept.remove(at))
        {
            return Ok(found);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.arriving.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(arrived) if fits(&arrived.what) => return Ok(arrived),
                Ok(arrived) => self.kept.push_back(arrived),
                Err(RecvTimeoutError::Timeout) => bail!("it was waited for {} s", PATIENCE.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("the server has ended"),
            }
        }
    }

    fn gather(&mut self) {
        self.kept.extend(self.arriving.try_iter());
    }

    fn ends_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match self.arriving.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_yet_is_kept() {
        let mut inbox = Inbox::of("1\nx\n2\n3\n".as_bytes(), |line| line.parse::<u32>().ok());
        assert_eq!(inbox.wait_for(|n| *n == 2).unwrap().what, 2);
        assert_eq!(inbox.wait_for(|n| *n == 1).unwrap().what, 1);
        assert_eq!(inbox.wait_for(|_| true).unwrap().what, 3);
        assert!(inbox.wait_for(|_| true).is_err());
        assert!(inbox.ends_within(Duration::from_mins(1)));
    }
}
