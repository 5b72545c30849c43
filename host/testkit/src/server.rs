//! A server over stdio, for tests. Every unexpected event fails the test.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking, as the type says; `Client` is for everybody else"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes values to give away"
)]

use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::StdioClient;
use crate::log::ProgramLog;
use crate::message::{error_kind_and_text, result_text};
use crate::{DEADLINE, LIST_CHANGED, TestFolder, ToolbayCommand, revision};

/// A running `toolbay serve`. Dropping it closes the server's input, and checks that all output was
/// JSON-RPC and that the exit code is 0.
///
/// # Panics
///
/// Every method panics if the server does not respond as expected within [`DEADLINE`].
#[derive(Debug)]
pub struct StdioServer {
    client: StdioClient,
    /// The server's log.
    pub log: ProgramLog,
    /// If set, the server was killed, and its exit is not checked.
    is_killed: bool,
}

impl StdioServer {
    /// Starts a server on the folder. Does not send anything.
    pub fn spawn(folder: &TestFolder) -> Self {
        Self::run(ToolbayCommand::new(folder).args(["serve"]))
    }

    /// Runs `command`, which must serve over stdio.
    pub fn run(command: ToolbayCommand) -> Self {
        let client = StdioClient::run(command).unwrap_or_else(|error| panic!("{error:#}"));
        let log = client.log().clone();
        Self {
            client,
            log,
            is_killed: false,
        }
    }

    /// Starts a server and performs the handshake in the newest revision with sessions.
    pub fn start(folder: &TestFolder) -> Self {
        Self::start_with_revision(revision::NEWEST_SESSION_REVISION, folder)
    }

    /// Starts a server and performs the handshake in `revision`.
    pub fn start_with_revision(revision: &str, folder: &TestFolder) -> Self {
        Self::spawn(folder).with_handshake(revision)
    }

    /// Like [`start`](Self::start), with a configuration file.
    pub fn start_with_config(folder: &TestFolder, config: &str) -> Self {
        Self::start_with_revision_and_config(revision::NEWEST_SESSION_REVISION, folder, config)
    }

    /// Like [`start_with_revision`](Self::start_with_revision), with a configuration file.
    pub fn start_with_revision_and_config(
        revision: &str,
        folder: &TestFolder,
        config: &str,
    ) -> Self {
        folder.write_config(config);
        Self::start_with_revision(revision, folder)
    }

    /// Performs the handshake.
    #[must_use]
    pub fn with_handshake(mut self, revision: &str) -> Self {
        self.run_or_panic(|client| client.initialize(revision));
        self
    }

    /// Sends `send_initialize` and returns the result.
    pub fn send_initialize(&mut self, revision: &str) -> Value {
        self.run_or_panic(|client| client.send_initialize(revision))
            .message
    }

    /// Returns the revisions with sessions that the server supports, oldest first.
    pub fn session_revisions(&mut self) -> Vec<String> {
        self.run_or_panic(StdioClient::session_revisions)
    }

    /// Sends bytes unchanged, followed by a line feed.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        self.send_raw([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes unchanged.
    pub fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.run_or_panic(|client| client.process().write(bytes.as_ref()));
    }

    /// Transfers the server's input to another writer.
    pub fn take_input(&mut self) -> ChildStdin {
        self.client
            .process()
            .take_input()
            .unwrap_or_else(|| panic!("the input is closed"))
    }

    /// Returns the input to the server after [`take_input`](Self::take_input).
    pub fn restore_input(&mut self, input: ChildStdin) {
        self.client.process().restore_input(input);
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.run_or_panic(|client| client.notify(method, &params));
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.run_or_panic(|client| client.request(method, &params))
    }

    /// Calls `tool` repeatedly until it returns the text `last`. Until then, it may only return a
    /// text in `before`.
    pub fn wait_for_text(&mut self, tool: &str, last: &str, before: &[&str]) {
        self.wait_for_text_with_arguments(tool, json!({}), last, before);
    }

    /// Like [`wait_for_text`](Self::wait_for_text), with arguments.
    pub fn wait_for_text_with_arguments(
        &mut self,
        tool: &str,
        arguments: Value,
        last: &str,
        before: &[&str],
    ) {
        self.wait_until(&format!("{tool} answers {last:?}"), |server| {
            let answer = server.text(tool, arguments.clone());
            assert!(
                answer == last || before.contains(&answer.as_str()),
                "{tool} answered {answer:?}"
            );
            answer == last
        });
    }

    /// Calls `done` repeatedly until it returns true, to wait for changes that have no
    /// notification.
    pub fn wait_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(
                began.elapsed() < DEADLINE,
                "it did not come to this: {what}; the log:\n{}",
                self.log.text()
            );
        }
    }

    /// Sends a tool call and returns its request id.
    pub fn start_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.run_or_panic(|client| client.start_call(tool, &arguments))
    }

    /// Sends a tool call whose progress token is its request id, and returns the id.
    pub fn start_call_with_progress(&mut self, tool: &str, arguments: Value) -> u64 {
        self.run_or_panic(|client| client.start_call_with_progress(tool, &arguments))
    }

    /// Waits for the response to a request and returns the whole message.
    pub fn wait_for_response(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request, waits for the response and returns the whole message.
    pub fn request_and_wait(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.wait_for_response(id)
    }

    /// Sends a request, which must succeed, and returns the result.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request_and_wait(method, params);
        assert!(answer.get("result").is_some(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Sends a request, which must fail, and returns the error.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request_and_wait(method, params);
        assert!(
            answer.get("error").is_some(),
            "{method} did not fail: {answer}"
        );
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
        result_text(&result)
    }

    /// Calls a tool, which must fail, and returns the error kind and the text.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments);
        error_kind_and_text(&result)
    }

    /// Waits for the response to a call and returns the result. The response must not be a JSON-RPC
    /// error.
    pub fn finish_call(&mut self, id: u64) -> Value {
        let mut answer = self.wait_for_response(id);
        assert!(answer.get("result").is_some(), "call {id} failed: {answer}");
        answer["result"].take()
    }

    /// Like [`finish_call`](Self::finish_call), but sends pings until the result arrives. See
    /// [`StdioClient::finish_call_with_pings`].
    pub fn finish_call_with_pings(&mut self, id: u64, ponged: impl FnMut(Duration)) -> Value {
        let answer = self
            .run_or_panic(|client| client.finish_call_with_pings(id, ponged))
            .message;
        answer.unwrap_or_else(|refusal| panic!("call {id} failed: {refusal:?}"))
    }

    /// Waits for the next notification with this method and returns its parameters.
    pub fn notification(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)["params"].take()
    }

    /// Removes the buffered notifications with this method and returns their parameters.
    pub fn take_notifications(&mut self, method: &str) -> Vec<Value> {
        let taken = self.client.take_notifications(method);
        taken
            .into_iter()
            .map(|mut message| message["params"].take())
            .collect()
    }

    /// Waits for a message that `wanted` accepts. Buffers all others.
    pub fn wait_for(&mut self, what: &str, wanted: impl FnMut(&Value) -> bool) -> Value {
        self.run_or_panic(|client| client.wait_for(what, wanted))
            .message
    }

    /// Waits for the next message from the server. Ignores buffered messages.
    pub fn receive(&mut self, what: &str) -> Value {
        self.run_or_panic(|client| client.receive(what)).message
    }

    /// Returns the names of all tools, from all pages.
    pub fn tool_names(&mut self) -> Vec<String> {
        self.run_or_panic(StdioClient::tool_names)
    }

    /// Returns all tools, from all pages.
    pub fn tools(&mut self) -> Vec<Value> {
        self.run_or_panic(StdioClient::tools)
    }

    /// Waits until this tool is listed. Other tools may be listed too.
    pub fn wait_for_tool(&mut self, name: &str) {
        while !self.tool_names().iter().any(|listed| listed == name) {
            self.wait_for(&format!("the tool {name:?}"), |message| {
                message["method"] == LIST_CHANGED
            });
        }
    }

    /// Waits until exactly these tools are listed. Lists the tools again after each `list_changed`
    /// notification. Returns the number of these notifications since the last call of this
    /// function.
    pub fn wait_until_listed(&mut self, names: &[&str]) -> usize {
        loop {
            let listed = self.tool_names();
            if listed == names {
                self.client.take_notifications(LIST_CHANGED);
                return self.client.take_list_changes();
            }
            self.wait_for(
                &format!("a change of the list from {listed:?} to {names:?}"),
                |message| message["method"] == LIST_CHANGED,
            );
        }
    }

    /// Closes the server's input. Does not wait until the server has exited.
    pub fn close_input(&mut self) {
        self.client.process().close_input();
    }

    /// Closes the server's input and waits until the server has exited. Returns the remaining
    /// messages and the exit code.
    pub fn stop(&mut self) -> (Vec<Value>, Option<i32>) {
        self.close_input();
        self.wait_for_exit()
    }

    /// Waits until the server has exited, without closing its input. Returns the remaining messages
    /// and the exit code.
    pub fn wait_for_exit(&mut self) -> (Vec<Value>, Option<i32>) {
        let (said, status) = self.run_or_panic(StdioClient::wait_for_exit);
        (said, status.code())
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        self.run_or_panic(StdioClient::kill);
        self.is_killed = true;
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.client.process().pid()
    }

    /// Runs `work` on the client and returns its value. Panics with the server's log on an error.
    #[track_caller]
    fn run_or_panic<T>(&mut self, work: impl FnOnce(&mut StdioClient) -> Result<T>) -> T {
        match work(&mut self.client) {
            Ok(done) => done,
            Err(error) => panic!("{error:#}; the log:\n{}", self.log.text()),
        }
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        // If the test has failed, the client kills the process.
        if !self.is_killed && !std::thread::panicking() {
            let (_, code) = self.stop();
            assert_eq!(
                code,
                Some(0),
                "the server did not end well; the log:\n{}",
                self.log.text()
            );
        }
    }
}
