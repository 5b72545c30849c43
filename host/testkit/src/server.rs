//! A server over stdio, for tests. Every unexpected event fails the test.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking, as the type says; `Client` is for everybody else"
)]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values to give away")]

use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::Client;
use crate::log::Log;
use crate::message::{failure, text};
use crate::{DEADLINE, Folder, LIST_CHANGED, Toolbay, revision};

/// A running `toolbay serve`. Dropping it closes the server's input, and checks that all output was
/// JSON-RPC and that the exit code is 0.
///
/// # Panics
///
/// Every method panics if the server does not respond as expected within [`DEADLINE`].
#[derive(Debug)]
pub struct Server {
    client: Client,
    /// The server's log.
    pub log: Log,
    /// If set, the server was killed, and its exit is not checked.
    gone: bool,
}

impl Server {
    /// Starts a server on the folder. Does not send anything.
    pub fn spawn(folder: &Folder) -> Self {
        Self::run(Toolbay::new(folder).args(["serve"]))
    }

    /// Runs `command`, which must serve over stdio.
    pub fn run(command: Toolbay) -> Self {
        let client = Client::run(command).unwrap_or_else(|error| panic!("{error:#}"));
        let log = client.log().clone();
        Self { client, log, gone: false }
    }

    /// Starts a server and performs the handshake in the newest revision with sessions.
    pub fn start(folder: &Folder) -> Self {
        Self::start_in(revision::SESSION, folder)
    }

    /// Starts a server and performs the handshake in `revision`.
    pub fn start_in(revision: &str, folder: &Folder) -> Self {
        Self::spawn(folder).initialized(revision)
    }

    /// Like [`start`](Self::start), with a configuration file.
    pub fn configured(folder: &Folder, config: &str) -> Self {
        Self::configured_in(revision::SESSION, folder, config)
    }

    /// Like [`start_in`](Self::start_in), with a configuration file.
    pub fn configured_in(revision: &str, folder: &Folder, config: &str) -> Self {
        folder.configure(config);
        Self::start_in(revision, folder)
    }

    /// Performs the handshake.
    #[must_use]
    pub fn initialized(mut self, revision: &str) -> Self {
        self.must(|client| client.initialize(revision));
        self
    }

    /// Sends `initialize` and returns the result.
    pub fn initialize(&mut self, revision: &str) -> Value {
        self.must(|client| client.say_initialize(revision)).what
    }

    /// Returns the revisions with sessions that the server supports, oldest first.
    pub fn with_sessions(&mut self) -> Vec<String> {
        self.must(Client::with_sessions)
    }

    /// Sends bytes unchanged, followed by a line feed.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        self.send_unfinished([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes unchanged.
    pub fn send_unfinished(&mut self, bytes: impl AsRef<[u8]>) {
        self.must(|client| client.process().write(bytes.as_ref()));
    }

    /// Transfers the server's input to another writer.
    pub fn take_input(&mut self) -> ChildStdin {
        self.client.process().take_input().unwrap_or_else(|| panic!("the input is closed"))
    }

    /// Returns the input to the server after [`take_input`](Self::take_input).
    pub fn give_input(&mut self, input: ChildStdin) {
        self.client.process().give_input(input);
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.must(|client| client.notify(method, &params));
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.must(|client| client.request(method, &params))
    }

    /// Calls `tool` repeatedly until it returns the text `last`. Until then, it may only return a
    /// text in `before`.
    pub fn answers_in_the_end(&mut self, tool: &str, last: &str, before: &[&str]) {
        self.answers_in_the_end_with(tool, json!({}), last, before);
    }

    /// Like [`answers_in_the_end`](Self::answers_in_the_end), with arguments.
    pub fn answers_in_the_end_with(&mut self, tool: &str, arguments: Value, last: &str, before: &[&str]) {
        self.until(&format!("{tool} answers {last:?}"), |server| {
            let answer = server.text(tool, arguments.clone());
            assert!(answer == last || before.contains(&answer.as_str()), "{tool} answered {answer:?}");
            answer == last
        });
    }

    /// Calls `done` repeatedly until it returns true, to wait for changes that have no
    /// notification.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < DEADLINE, "it did not come to this: {what}; the log:\n{}", self.log.text());
        }
    }

    /// Sends a tool call and returns its request id.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.must(|client| client.begin(tool, &arguments))
    }

    /// Sends a tool call whose progress token is its request id, and returns the id.
    pub fn begin_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        self.must(|client| client.begin_with_progress(tool, &arguments))
    }

    /// Waits for the response to a request and returns the whole message.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request, waits for the response and returns the whole message.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request, which must succeed, and returns the result.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Sends a request, which must fail, and returns the error.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_some(), "{method} did not fail: {answer}");
        answer["error"].take()
    }

    /// Calls a tool and returns the result, which may report a failure.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool, which must return text, and returns the text.
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert!(result.get("isError").is_none(), "{tool} failed: {result}");
        text(&result)
    }

    /// Calls a tool, which must fail, and returns the error kind and the text.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments);
        failure(&result)
    }

    /// Waits for the response to a call and returns the result. The response must not be a JSON-RPC
    /// error.
    pub fn finish(&mut self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("result").is_some(), "call {id} failed: {answer}");
        answer["result"].take()
    }

    /// Like [`finish`](Self::finish), but sends pings until the result arrives. See
    /// [`Client::finish_with_pings`].
    pub fn finish_with_pings(&mut self, id: u64, ponged: impl FnMut(Duration)) -> Value {
        let answer = self.must(|client| client.finish_with_pings(id, ponged)).what;
        answer.unwrap_or_else(|refusal| panic!("call {id} failed: {refusal:?}"))
    }

    /// Waits for the next notification with this method and returns its parameters.
    pub fn notification(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)["params"].take()
    }

    /// Removes the buffered notifications with this method and returns their parameters.
    pub fn notifications_so_far(&mut self, method: &str) -> Vec<Value> {
        let taken = self.client.kept_notifications(method);
        taken.into_iter().map(|mut message| message["params"].take()).collect()
    }

    /// Waits for a message that `wanted` accepts. Buffers all others.
    pub fn wait_for(&mut self, what: &str, wanted: impl FnMut(&Value) -> bool) -> Value {
        self.must(|client| client.wait_for(what, wanted)).what
    }

    /// Waits for the next message from the server. Ignores buffered messages.
    pub fn receive(&mut self, what: &str) -> Value {
        self.must(|client| client.receive(what)).what
    }

    /// Returns the names of all tools, from all pages.
    pub fn names(&mut self) -> Vec<String> {
        self.must(Client::names)
    }

    /// Returns all tools, from all pages.
    pub fn tools(&mut self) -> Vec<Value> {
        self.must(Client::tools)
    }

    /// Waits until this tool is listed. Other tools may be listed too.
    pub fn wait_for_tool(&mut self, name: &str) {
        while !self.names().iter().any(|listed| listed == name) {
            self.wait_for(&format!("the tool {name:?}"), |message| message["method"] == LIST_CHANGED);
        }
    }

    /// Waits until exactly these tools are listed. Lists the tools again after each `list_changed`
    /// notification. Returns the number of these notifications since the last call of this
    /// function.
    pub fn wait_until_listed(&mut self, names: &[&str]) -> usize {
        loop {
            let listed = self.names();
            if listed == names {
                self.client.kept_notifications(LIST_CHANGED);
                return self.client.take_list_changes();
            }
            self.wait_for(&format!("a change of the list from {listed:?} to {names:?}"), |message| {
                message["method"] == LIST_CHANGED
            });
        }
    }

    /// Closes the server's input. Does not wait until the server has exited.
    pub fn close(&mut self) {
        self.client.process().close_input();
    }

    /// Closes the server's input and waits until the server has exited. Returns the remaining
    /// messages and the exit code.
    pub fn end(&mut self) -> (Vec<Value>, Option<i32>) {
        self.close();
        self.wait()
    }

    /// Waits until the server has exited, without closing its input. Returns the remaining messages
    /// and the exit code.
    pub fn wait(&mut self) -> (Vec<Value>, Option<i32>) {
        let (said, status) = self.must(Client::wait);
        (said, status.code())
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        self.must(Client::kill);
        self.gone = true;
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.client.process().pid()
    }

    /// Runs `work` on the client and returns its value. Panics with the server's log on an error.
    #[track_caller]
    fn must<T>(&mut self, work: impl FnOnce(&mut Client) -> Result<T>) -> T {
        match work(&mut self.client) {
            Ok(done) => done,
            Err(error) => panic!("{error:#}; the log:\n{}", self.log.text()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the test has failed, the client kills the process.
        if !self.gone && !std::thread::panicking() {
            let (_, code) = self.end();
            assert_eq!(code, Some(0), "the server did not end well; the log:\n{}", self.log.text());
        }
    }
}
