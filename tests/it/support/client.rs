//! A server on standard input and output, and the client that talks to it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use serde_json::{Value, json};

use super::log::Log;
use super::message::{failure, read, text};
use super::{DEADLINE, Folder, Toolbay};

pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A running `toolbay serve`. Dropped, it closes the server's input and checks
/// that everything it said was JSON-RPC and that it ended well.
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
    list_changes: usize,
    next_id: u64,
    pub(crate) log: Log,
    killed: bool,
    _folder: Folder,
}

impl Server {
    /// A server on the folder, with no word said yet.
    pub(crate) fn spawn(folder: &Folder) -> Self {
        Self::run(Toolbay::new(folder).args(["serve"]))
    }

    /// `command` must serve.
    pub(crate) fn run(command: Toolbay) -> Self {
        let (mut command, folder) = command.into_parts();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap_or_else(|error| format!("not a line of UTF-8: {error}"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let log = Log::follow(child.stderr.take().unwrap());
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            kept: VecDeque::new(),
            list_changes: 0,
            next_id: 0,
            log,
            killed: false,
            _folder: folder,
        }
    }

    /// A server that has shaken hands in the newest session revision.
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::spawn(folder).initialized("2025-11-25")
    }

    /// The same, with a configuration file.
    pub(crate) fn configured(folder: &Folder, config: &str) -> Self {
        std::fs::write(folder.beside("toolbay.toml"), config).unwrap();
        Self::start(folder)
    }

    /// Shakes hands.
    pub(crate) fn initialized(mut self, revision: &str) -> Self {
        self.initialize(revision);
        self.notify("notifications/initialized", json!({}));
        self
    }

    /// Says `initialize` and returns the result.
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        let client = json!({"name": "tests", "version": "0"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        self.result("initialize", params)
    }

    /// Sends bytes as they are, with a line end.
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        self.send_unfinished([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes as they are.
    pub(crate) fn send_unfinished(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin.as_mut().expect("the input is open").write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Lets somebody else write to the server, until it is given back.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.stdin.take().expect("the input is open")
    }

    pub(crate) fn give_input(&mut self, input: ChildStdin) {
        self.stdin = Some(input);
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Calls `tool` again and again until it answers `last`; until then only `before` may come.
    pub(crate) fn answers_in_the_end(&mut self, tool: &str, last: &str, before: &[&str]) {
        self.answers_in_the_end_with(tool, json!({}), last, before);
    }

    /// The same, with arguments.
    pub(crate) fn answers_in_the_end_with(&mut self, tool: &str, arguments: Value, last: &str, before: &[&str]) {
        self.until(&format!("{tool} answers {last:?}"), |server| {
            let answer = server.text(tool, arguments.clone());
            assert!(answer == last || before.contains(&answer.as_str()), "{tool} answered {answer:?}");
            answer == last
        });
    }

    /// Asks the server until `done`. For changes of which nobody is told.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < DEADLINE, "it did not come to this: {what}; the log:\n{}", self.log.text());
        }
    }

    /// Sends a call and returns its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a call that wants to hear of its progress, by a token that is its id.
    pub(crate) fn begin_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        let token = self.next_id + 1;
        self.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}))
    }

    /// Waits for the answer to a request: the whole message.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request and waits for its answer: the whole message.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// The same; the result.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// The same; the error.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_some(), "{method} did not fail: {answer}");
        answer["error"].take()
    }

    /// Calls a tool and returns the result, whether it is an error or not.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool that must succeed with text.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert!(result.get("isError").is_none(), "{tool} failed: {result}");
        text(&result)
    }

    /// Calls a tool that must fail, and returns the kind of the failure and its text.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments);
        failure(&result)
    }

    /// Waits for the answer of a call, which must be a result.
    pub(crate) fn finish(&mut self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("result").is_some(), "call {id} failed: {answer}");
        answer["result"].take()
    }

    /// Waits for the next notification with this method, and returns its parameters.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)["params"].take()
    }

    /// Takes the notifications with this method that have come up to now.
    pub(crate) fn notifications_so_far(&mut self, method: &str) -> Vec<Value> {
        let (taken, kept) = self.kept.drain(..).partition(|message| message["method"] == method);
        self.kept = kept;
        taken.into_iter().map(|mut message: Value| message["params"].take()).collect()
    }

    /// Waits for a message that `wanted` accepts, and keeps all others for later.
    pub(crate) fn wait_for(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&mut wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let message = self.receive(what);
            if wanted(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// The next message that the server sends.
    pub(crate) fn receive(&mut self, what: &str) -> Value {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => {
                let message = read(&line);
                self.list_changes += usize::from(message["method"] == LIST_CHANGED);
                message
            }
            Err(error) => panic!("{error} while waiting for {what}; the log:\n{}", self.log.text()),
        }
    }

    /// The names of all tools, page after page.
    pub(crate) fn names(&mut self) -> Vec<String> {
        self.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// All tools, page after page.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.result("tools/list", params);
            tools.append(page["tools"].as_array_mut().unwrap());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    /// Waits until this tool is listed, whatever else is.
    pub(crate) fn wait_for_tool(&mut self, name: &str) {
        while !self.names().iter().any(|listed| listed == name) {
            self.wait_for(&format!("the tool {name:?}"), |message| message["method"] == LIST_CHANGED);
        }
    }

    /// Waits until exactly these tools are listed, asking again whenever the
    /// server says that the list changed. Returns how often it has said so
    /// since the last call of this function.
    pub(crate) fn wait_until_listed(&mut self, names: &[&str]) -> usize {
        loop {
            let listed = self.names();
            if listed == names {
                self.kept.retain(|message| message["method"] != LIST_CHANGED);
                return std::mem::take(&mut self.list_changes);
            }
            self.wait_for(&format!("a change of the list from {listed:?} to {names:?}"), |message| {
                message["method"] == LIST_CHANGED
            });
        }
    }

    /// Closes the server's input without waiting for its end.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// What the server still says, to its end; and its exit code.
    pub(crate) fn end(&mut self) -> (Vec<Value>, Option<i32>) {
        self.close();
        self.wait()
    }

    /// The same, with the server's input left as it is.
    pub(crate) fn wait(&mut self) -> (Vec<Value>, Option<i32>) {
        let mut said: Vec<Value> = self.kept.drain(..).collect();
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => said.push(read(&line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end; the log:\n{}", self.log.text()),
            }
        }
        (said, self.child.wait().unwrap().code())
    }

    /// Ends it as nothing can be prepared for: it runs no line of its code any more.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.killed = true;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.killed {
            return;
        }
        if std::thread::panicking() {
            drop(self.child.kill());
            drop(self.child.wait());
            return;
        }
        let (_, code) = self.end();
        assert_eq!(code, Some(0), "the server did not end well; the log:\n{}", self.log.text());
    }
}
