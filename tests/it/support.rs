//! What the tests share: a folder, a server on it, a command line, and components made to measure.

mod client;
mod command;
mod folder;
mod http;
mod log;
mod message;
mod tiny;
pub(crate) mod wit;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use self::client::{LIST_CHANGED, Server};
pub(crate) use self::command::{Outcome, Toolbay};
pub(crate) use self::folder::Folder;
pub(crate) use self::http::{HttpServer, HttpSession, MODERN, Response, initialize, modern};
pub(crate) use self::log::Log;
pub(crate) use self::message::{failure, text};
pub(crate) use self::tiny::{Tiny, Tool};

/// After this long without what a test waits for, it failed. Nothing takes a tenth of it.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The guest that misbehaves on demand, see `tests/guests/hostile`.
pub(crate) fn hostile() -> Vec<u8> {
    built("guests", "hostile")
}

/// The tools of the official conformance suite, see `tests/guests/conformance`.
pub(crate) fn conformance() -> Vec<u8> {
    built("guests", "conformance")
}

/// A sample plugin of `plugins/`.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    built("plugins", name)
}

/// A build of the hostile guest that differs in what its tool `version` says, and in nothing else.
pub(crate) fn hostile_version(number: u32) -> Vec<u8> {
    const MARKER: &[u8] = b"build-marker-0001";
    let mut bytes = hostile();
    let at = bytes.windows(MARKER.len()).position(|window| window == MARKER).expect("the guest has its marker");
    bytes[at..at + MARKER.len()].copy_from_slice(format!("build-marker-{number:04}").as_bytes());
    compile_once(&format!("version-{number}"), &bytes);
    bytes
}

fn built(kind: &str, name: &str) -> Vec<u8> {
    let workspace = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    // An absolute CARGO_TARGET_DIR replaces the workspace here.
    let path = workspace.join(target).join(kind).join(format!("{name}.wasm"));
    let component = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask build` first", path.display()));
    compile_once(name, &component);
    component
}

/// Has a component compiled into the store that all tests share. Compiling has
/// the lowest priority, so that beside other work it may take longer than a
/// test, or a call at start, should wait.
fn compile_once(name: &str, component: &[u8]) {
    static COMPILED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    // Held meanwhile: who needs the same one waits for it.
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.insert(name.to_owned()) {
        let outcome = Toolbay::new(&Folder::with(&format!("{name}.wasm"), component)).args(["list"]).run();
        assert!(outcome.stdout.contains(&format!("{name}  ready")), "{outcome}");
    }
}
