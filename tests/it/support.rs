//! Shared code of the tests: the test kit, with the program that cargo has built.

use std::ops::Deref;

use serde_json::Value;
use toolbay_testkit as kit;

pub(crate) use toolbay_testkit::message::{error_kind_and_text, result_text};
pub(crate) use toolbay_testkit::revision::FIRST_STATELESS_REVISION as MODERN;
pub(crate) use toolbay_testkit::{
    CommandOutput, DEADLINE, HttpResponse, HttpServer, HttpSession, LIST_CHANGED, ProgramLog,
    StdioServer, TinyComponent, TinyTool, ToolbayCommand, wit,
};

/// A folder that servers of this build serve.
#[derive(Clone)]
pub(crate) struct Folder(kit::TestFolder);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(kit::TestFolder::new(&program()))
    }

    /// Creates a folder with one plugin.
    pub(crate) fn with(name: &str, component: impl AsRef<[u8]>) -> Self {
        Self(kit::TestFolder::with_plugin(&program(), name, component))
    }

    /// Returns the same folder, which rewrites each file before writing it.
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

/// Returns the server, with one compile cache for all tests.
fn program() -> kit::ServerProgram {
    kit::ServerProgram::new(env!("CARGO_BIN_EXE_toolbay"))
        .with_home(concat!(env!("CARGO_TARGET_TMPDIR"), "/home"))
}

/// Appends a type to a component, so that it runs in the engine for components with async
/// functions. Other files are unchanged.
pub(crate) fn made_async(mut component: Vec<u8>) -> Vec<u8> {
    if !component.starts_with(b"\0asm\x0d\0\x01\0") {
        return component;
    }
    // A section of types with one type: a stream of bytes.
    component.extend([0x07, 4, 1, 0x66, 0x01, 0x7d]);
    component
}

/// Returns the guest that misbehaves on request, see `tests/guests/hostile`.
pub(crate) fn hostile() -> Vec<u8> {
    precompiled("hostile", kit::guests::guest("hostile").unwrap())
}

/// Returns the guest with the tools of the official conformance suite, see
/// `tests/guests/conformance`.
pub(crate) fn conformance() -> Vec<u8> {
    precompiled("conformance", kit::guests::guest("conformance").unwrap())
}

/// Returns the guest that sends HTTP requests, see `tests/guests/web`.
pub(crate) fn web() -> Vec<u8> {
    precompiled("web", kit::guests::guest("web").unwrap())
}

/// Returns the guest that opens sockets and reads clocks and random numbers, see
/// `tests/guests/net`.
pub(crate) fn net() -> Vec<u8> {
    precompiled("net", kit::guests::guest("net").unwrap())
}

/// Returns the guest that stores state, see `tests/guests/keeper`.
pub(crate) fn keeper() -> Vec<u8> {
    precompiled("keeper", kit::guests::guest("keeper").unwrap())
}

/// Returns the guest with prompts, resources and views, see `tests/guests/library`.
pub(crate) fn library() -> Vec<u8> {
    precompiled("library", kit::guests::guest("library").unwrap())
}

/// Returns the guest that asks its caller questions, see `tests/guests/asker`.
pub(crate) fn asker() -> Vec<u8> {
    precompiled("asker", kit::guests::guest("asker").unwrap())
}

/// Returns a guest that is an MCP server itself, or an HTTP handler that is not: see
/// `tests/guests`.
pub(crate) fn own_server(name: &str) -> Vec<u8> {
    precompiled(name, kit::guests::guest(name).unwrap())
}

/// Returns a sample plugin of `plugins/`.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    precompiled(name, kit::guests::sample(name).unwrap())
}

/// Returns a plugin of `examples/`.
pub(crate) fn example(name: &str) -> Vec<u8> {
    precompiled(name, kit::guests::example(name).unwrap())
}

/// Returns a build of the hostile guest that differs only in the result of its tool `version`.
pub(crate) fn hostile_version(number: u32) -> Vec<u8> {
    const MARKER: &[u8] = b"build-marker-0001";
    let mut bytes = hostile();
    let at = bytes
        .windows(MARKER.len())
        .position(|window| window == MARKER)
        .expect("the guest has its marker");
    bytes[at..at + MARKER.len()].copy_from_slice(format!("build-marker-{number:04}").as_bytes());
    precompiled(&format!("version-{number}"), bytes)
}

/// Returns a component that is already in the compile cache when a server of this build loads it.
fn precompiled(id: &str, component: Vec<u8>) -> Vec<u8> {
    kit::compile_once(&program(), id, &component).unwrap();
    component
}

/// Returns an `initialize` request.
pub(crate) fn initialize(revision: &str) -> Value {
    kit::message::request(0, "initialize", &kit::message::initialize_params(revision))
}

/// Returns a request of the stateless revision.
pub(crate) fn modern(id: Value, method: &str, params: Value) -> Value {
    kit::message::stateless_request(MODERN, id, method, params)
}
