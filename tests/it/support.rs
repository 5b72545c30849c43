//! Shared by the tests: the test kit, with the program that cargo has built.

use std::ops::Deref;

use serde_json::Value;
use toolbay_testkit as kit;

pub(crate) use toolbay_testkit::message::{error_kind_and_text, result_text};
pub(crate) use toolbay_testkit::revision::FIRST_STATELESS_REVISION as MODERN;
pub(crate) use toolbay_testkit::{
    CommandOutput, DEADLINE, HttpResponse, HttpServer, HttpSession, LIST_CHANGED, ProgramLog,
    StdioServer, TinyComponent, TinyTool, ToolbayCommand, wit,
};

/// A folder in which servers of this build work.
#[derive(Clone)]
pub(crate) struct Folder(kit::TestFolder);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(kit::TestFolder::new(&program()))
    }

    /// A folder with one plugin.
    pub(crate) fn with(name: &str, component: impl AsRef<[u8]>) -> Self {
        Self(kit::TestFolder::with_plugin(&program(), name, component))
    }

    /// The same folder, where each file is changed in this way before it is there.
    pub(crate) fn rewriting(self, rewrite: fn(Vec<u8>) -> Vec<u8>) -> Self {
        Self(self.0.with_rewrite(rewrite))
    }
}

impl Deref for Folder {
    type Target = kit::TestFolder;

    fn deref(&self) -> &kit::TestFolder {
        &self.0
    }
}

/// The server, with one compile cache for all tests.
fn program() -> kit::ServerProgram {
    kit::ServerProgram::new(env!("CARGO_BIN_EXE_toolbay"))
        .with_home(concat!(env!("CARGO_TARGET_TMPDIR"), "/home"))
}

/// A component with a type at its end that has it run in the engine of components with async
/// functions. Any other file is what it was.
pub(crate) fn made_async(mut component: Vec<u8>) -> Vec<u8> {
    if !component.starts_with(b"\0asm\x0d\0\x01\0") {
        return component;
    }
    // A section of types, with one of them: a stream of bytes.
    component.extend([0x07, 4, 1, 0x66, 0x01, 0x7d]);
    component
}

/// The guest that misbehaves on request, see `tests/guests/hostile`.
pub(crate) fn hostile() -> Vec<u8> {
    ready("hostile", kit::guests::guest("hostile").unwrap())
}

/// The tools of the official conformance suite, see `tests/guests/conformance`.
pub(crate) fn conformance() -> Vec<u8> {
    ready("conformance", kit::guests::guest("conformance").unwrap())
}

/// The guest that sends HTTP requests, see `tests/guests/web`.
pub(crate) fn web() -> Vec<u8> {
    ready("web", kit::guests::guest("web").unwrap())
}

/// The guest that opens sockets, and looks at clocks and random numbers, see `tests/guests/net`.
pub(crate) fn net() -> Vec<u8> {
    ready("net", kit::guests::guest("net").unwrap())
}

/// The guest that keeps state, see `tests/guests/keeper`.
pub(crate) fn keeper() -> Vec<u8> {
    ready("keeper", kit::guests::guest("keeper").unwrap())
}

/// The guest with prompts, resources and views, see `tests/guests/library`.
pub(crate) fn library() -> Vec<u8> {
    ready("library", kit::guests::guest("library").unwrap())
}

/// The guest that asks, see `tests/guests/asker`.
pub(crate) fn asker() -> Vec<u8> {
    ready("asker", kit::guests::guest("asker").unwrap())
}

/// A guest that is an MCP server of its own, or an HTTP handler that is none: see `tests/guests`.
pub(crate) fn own_server(name: &str) -> Vec<u8> {
    ready(name, kit::guests::guest(name).unwrap())
}

/// A sample plugin of `plugins/`.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    ready(name, kit::guests::sample(name).unwrap())
}

/// A plugin of `examples/`.
pub(crate) fn example(name: &str) -> Vec<u8> {
    ready(name, kit::guests::example(name).unwrap())
}

/// A build of the hostile guest that differs only in the result of its tool `version`.
pub(crate) fn hostile_version(number: u32) -> Vec<u8> {
    const MARKER: &[u8] = b"build-marker-0001";
    let mut bytes = hostile();
    let at = bytes
        .windows(MARKER.len())
        .position(|window| window == MARKER)
        .expect("the guest has its marker");
    bytes[at..at + MARKER.len()].copy_from_slice(format!("build-marker-{number:04}").as_bytes());
    ready(&format!("version-{number}"), bytes)
}

/// A component that is already in the compile cache when a server of this build finds it.
fn ready(id: &str, component: Vec<u8>) -> Vec<u8> {
    kit::compile_once(&program(), id, &component).unwrap();
    component
}

/// `initialize` as a message.
pub(crate) fn initialize(revision: &str) -> Value {
    kit::message::request(0, "initialize", &kit::message::initialize_params(revision))
}

/// A request of the stateless revision as a message.
pub(crate) fn modern(id: Value, method: &str, params: Value) -> Value {
    kit::message::stateless_request(MODERN, id, method, params)
}
