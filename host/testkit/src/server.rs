//! A server over standard input and output, for tests: every unexpected event fails the test.

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

/// A running `toolbay serve`. Dropping it closes the server's input, and checks that everything it wrote was JSON-RPC
/// and that it ended well.
///
/// # Panics
///
/// Every method panics if the server does not do what the method waits for within [`DEADLINE`].
#[derive(Debug)]
pub struct Server {
    client: Client,
    /// The server's log.
    pub log: Log,
    /// Whether the end of the server is not checked any more.
    gone: bool,
}

impl Server {
    /// Starts a server on the folder. Sends nothing yet.
    pub fn spawn(folder: &Folder) -> Self {
        Self::run(Toolbay::new(folder).args(["serve"]))
    }

    /// Runs `command`, which must serve.
    pub fn run(command: Toolbay) -> Self {
        let client = Client::run(command).unwrap_or_else(|error| panic!("{error:#}"));
        let log = client.log().clone();
        Self { client, log, gone: false }
    }

    /// A server after the handshake in the newest revision with sessions.
    pub fn start(folder: &Folder) -> Self {
        Self::start_in(revision::SESSION, folder)
    }

    /// A server after the handshake in this revision.
    pub fn start_in(revision: &str, folder: &Folder) -> Self {
        Self::spawn(folder).initialized(revision)
    }

    /// The same as [`start`](Self::start), with a configuration file.
    pub fn configured(folder: &Folder, config: &str) -> Self {
        Self::configured_in(revision::SESSION, folder, config)
    }

    /// The same as [`start_in`](Self::start_in), with a configuration file.
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

    /// The revisions with sessions that the server offers, oldest first.
    pub fn with_sessions(&mut self) -> Vec<String> {
        self.must(Client::with_sessions)
    }

    /// Sends bytes unchanged, with a line feed.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        self.send_unfinished([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes unchanged.
    pub fn send_unfinished(&mut self, bytes: impl AsRef<[u8]>) {
        self.must(|client| client.process().write(bytes.as_ref()));
    }

    /// Hands the server's input to another writer.
    pub fn take_input(&mut self) -> ChildStdin {
        self.client.process().take_input().unwrap_or_else(|| panic!("the input is closed"))
    }

    /// Takes the input back.
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

    /// Calls `tool` repeatedly until it returns `last`; until then it may only return `before`.
    pub fn answers_in_the_end(&mut self, tool: &str, last: &str, before: &[&str]) {
        self.answers_in_the_end_with(tool, json!({}), last, before);
    }

    /// The same, with arguments.
    pub fn answers_in_the_end_with(&mut self, tool: &str, arguments: Value, last: &str, before: &[&str]) {
        self.until(&format!("{tool} answers {last:?}"), |server| {
            let answer = server.text(tool, arguments.clone());
            assert!(answer == last || before.contains(&answer.as_str()), "{tool} answered {answer:?}");
            answer == last
        });
    }

    /// Sends requests to the server until `done`, for changes without a notification.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < DEADLINE, "it did not come to this: {what}; the log:\n{}", self.log.text());
        }
    }

    /// Sends a call and returns its id.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.must(|client| client.begin(tool, &arguments))
    }

    /// Sends a call with a progress token, which is the call's id.
    pub fn begin_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        self.must(|client| client.begin_with_progress(tool, &arguments))
    }

    /// Waits for the response to a request and returns the whole message.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request and waits for its response, the whole message.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// The same; returns the result.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// The same; returns the error.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_some(), "{method} did not fail: {answer}");
        answer["error"].take()
    }

    /// Calls a tool and returns the result, whether it failed or not.
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

    /// Waits for the response to a call, which must be a result.
    pub fn finish(&mut self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("result").is_some(), "call {id} failed: {answer}");
        answer["result"].take()
    }

    /// The same, and meanwhile pings the server; see [`Client::finish_with_pings`].
    pub fn finish_with_pings(&mut self, id: u64, ponged: impl FnMut(Duration)) -> Value {
        let answer = self.must(|client| client.finish_with_pings(id, ponged)).what;
        answer.unwrap_or_else(|refusal| panic!("call {id} failed: {refusal:?}"))
    }

    /// Waits for the next notification with this method, and returns its parameters.
    pub fn notification(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)["params"].take()
    }

    /// Returns the notifications with this method that have arrived so far.
    pub fn notifications_so_far(&mut self, method: &str) -> Vec<Value> {
        let taken = self.client.kept_notifications(method);
        taken.into_iter().map(|mut message| message["params"].take()).collect()
    }

    /// Waits for a message that `wanted` accepts. Keeps all others.
    pub fn wait_for(&mut self, what: &str, wanted: impl FnMut(&Value) -> bool) -> Value {
        self.must(|client| client.wait_for(what, wanted)).what
    }

    /// The next message that the server sends.
    pub fn receive(&mut self, what: &str) -> Value {
        self.must(|client| client.receive(what)).what
    }

    /// The names of all tools, from all pages.
    pub fn names(&mut self) -> Vec<String> {
        self.must(Client::names)
    }

    /// All tools, from all pages.
    pub fn tools(&mut self) -> Vec<Value> {
        self.must(Client::tools)
    }

    /// Waits until this tool is listed, whichever others are.
    pub fn wait_for_tool(&mut self, name: &str) {
        while !self.names().iter().any(|listed| listed == name) {
            self.wait_for(&format!("the tool {name:?}"), |message| message["method"] == LIST_CHANGED);
        }
    }

    /// Waits until exactly these tools are listed. Lists them again after each `list_changed` notification. Returns the
    /// number of these notifications since the last call of this function.
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

    /// Closes the server's input. Does not wait for the server's end.
    pub fn close(&mut self) {
        self.client.process().close_input();
    }

    /// Ends the server; returns its last messages and its exit code.
    pub fn end(&mut self) -> (Vec<Value>, Option<i32>) {
        self.close();
        self.wait()
    }

    /// The same, but leaves the server's input open.
    pub fn wait(&mut self) -> (Vec<Value>, Option<i32>) {
        let (said, status) = self.must(Client::wait);
        (said, status.code())
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        self.must(Client::kill);
        self.gone = true;
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.client.process().pid()
    }

    /// Returns the value of `work`. An error fails the test and prints the log.
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
