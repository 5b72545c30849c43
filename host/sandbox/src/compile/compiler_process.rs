//! The compiler process: `toolbay compile-worker` reads a plugin file and writes its compiled form.
//!
//! Compilation cannot be interrupted, and a component of one kilobyte can need minutes and
//! gigabytes. In a child process, the operating system enforces limits, and failures affect nothing
//! else.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use bytesize::ByteSize;
use rustix::process::{
    Resource, Rlimit, getrlimit, nice, set_parent_process_death_signal, setrlimit,
};
use serde::{Deserialize, Serialize};
use toolbay_model::text::join_lines;
use wasmtime::Engine;

use crate::compile::engine;
use crate::compile::memory_snapshot;
use crate::compile::preinit;
use crate::component::adapter;
use crate::component::adapter::AdaptedComponent;
use crate::component::concurrency;
use crate::component::concurrency::WasiP3Requirements;
use crate::component::docs::ComponentDocs;
use crate::component::export_limits::{ComponentKind, check_exports};
use crate::component::mcp_detection;
use crate::component::plugin_summary::PluginSummary;
use crate::component::wasm_proposals::WasmProposals;

/// Maximum size of the output, in bytes. Compiled code is a small multiple of its source, so more
/// is a mistake.
const MAX_OUTPUT_BYTES: u64 = 1 << 30;

/// Nice value of the compiler, which gives it about a tenth of a busy core. With the maximum, 19,
/// it would get a sixtieth, and loading a plugin while tools are busy would take minutes.
const NICE: i32 = 10;

/// Prefix of an error about the component.
const INVALID_PREFIX: &str = "invalid component: ";

/// Advice for a component with the pre-standard exception instructions of browsers.
const LEGACY_EXCEPTIONS_ADVICE: &str = " (it throws exceptions with the instructions that came before the standard; build it with those of \
                      WebAssembly 3.0: -Xwasm-use-new-exception-proposal for Kotlin, -sWASM_LEGACY_EXCEPTIONS=0 for \
                      Emscripten, -mllvm -wasm-use-legacy-eh=false for clang)";

/// Message for a component with async functions if the operator has disabled them.
const ASYNC_DISABLED_MESSAGE: &str = "has async functions, and engine.async is false (to run it, set engine.async = true; componentize-qjs builds \
                   it without them with --sync)";

/// Message for a WASI 0.3 component if the operator has disabled async functions.
const WASI_P3_DISABLED_MESSAGE: &str = "needs WASI 0.3, and engine.async is false (to run it, set engine.async = true; to do without, build \
                         it for WASI 0.2: with --sync for componentize-qjs, for wasm32-wasip2 with Rust)";

/// Exit code if compilation succeeded but the output could not be written.
pub(crate) const EXIT_WRITE_FAILED: u8 = 3;

/// Exit code if the child could not start, regardless of its input.
const EXIT_NOT_STARTED: u8 = 4;

/// Exit code if the input is invalid. A panic has another exit code.
pub(crate) const EXIT_INVALID: u8 = 1;

/// Maximum size of the notes of a child, in bytes. Notes are larger only if they contain
/// excessively long documentation.
pub(crate) const MAX_NOTES_BYTES: usize = 1 << 20;

/// Task of the child for a plugin file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerJob {
    /// Compiles the file.
    #[default]
    Compile,
    /// Adds exports that show the component's state, for `toolbay optimize`.
    Instrument,
    /// Writes the state of an instance into the file.
    Snapshot,
}

/// Notes of the child about a file, in addition to its code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct WorkerNotes {
    /// The author's documentation of the component's functions.
    pub(crate) docs: ComponentDocs,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
    /// Summary of the file.
    pub(crate) about: PluginSummary,
    /// True if the component is a command that may be an MCP server.
    pub(crate) speaks: bool,
    /// Number of instances with functions in the component, if it has async functions and was
    /// compiled for the async engine.
    #[serde(default)]
    pub(crate) tasked: Option<u32>,
}

/// Engines that compile components.
#[derive(Clone)]
pub(crate) struct WorkerEngines {
    sync_engine: Engine,
    stack_size: ByteSize,
    /// If set, components may have async functions.
    allows_async: bool,
}

impl WorkerEngines {
    /// Creates the engines for guests with a native stack of this size.
    pub(crate) fn new(stack: ByteSize, allows_async: bool) -> wasmtime::Result<Self> {
        Ok(Self {
            sync_engine: engine::build_compiler(stack)?,
            stack_size: stack,
            allows_async,
        })
    }

    /// Creates the engine for components with async functions.
    fn async_engine(&self) -> Result<Engine, String> {
        engine::build_async_compiler(self.stack_size)
            .map_err(|error| error.root_cause().to_string())
    }
}

/// Compiles standard input to standard output, or runs another job. The input is the length of the
/// plugin file (eight bytes, little-endian), the file, the length and text of the accompanying
/// `.wit` file, and the remaining input of the job. Uses at most `memory` bytes of address space
/// and `cpu` seconds of CPU time. Writes the notes, or an error about the input, to standard error.
/// If `allows_async` is set, components may have async functions.
pub fn run(stack: ByteSize, memory: u64, cpu: u64, allows_async: bool, job: WorkerJob) -> ExitCode {
    if let Err(error) = set_limits(memory, cpu) {
        return report_failure(
            EXIT_NOT_STARTED,
            &format!("cannot set the compiler's limits: {error}"),
        );
    }
    let WorkerInput { file, wit, rest } = match read_input() {
        Ok(input) => input,
        Err(error) => {
            return report_failure(
                EXIT_NOT_STARTED,
                &format!("the compiler cannot read the component: {error}"),
            );
        }
    };
    if job != WorkerJob::Compile {
        // Standard error must contain only messages for people.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let result = match job {
        WorkerJob::Compile => {
            let engines = WorkerEngines::new(stack, allows_async)
                .map_err(|error| error.root_cause().to_string());
            let compiled = engines.and_then(|engines| compile(&engines, file, &wit));
            compiled.map(|(code, notes)| (code, encode_notes(notes)))
        }
        WorkerJob::Instrument => {
            preinit::instrument(file, &wit).map(|component| (component, Vec::new()))
        }
        WorkerJob::Snapshot => snapshot(file, &wit, &rest).map(|component| (component, Vec::new())),
    };
    match result {
        Ok((bytes, notes)) => {
            if io::stdout().write_all(&bytes).is_err() {
                return ExitCode::from(EXIT_WRITE_FAILED);
            }
            drop(io::stderr().write_all(&notes));
            ExitCode::SUCCESS
        }
        Err(complaint) => report_failure(EXIT_INVALID, &complaint),
    }
}

/// Compiles a plugin file. Returns the code and the notes, or an error message.
pub(crate) fn compile(
    engines: &WorkerEngines,
    file: Vec<u8>,
    wit: &str,
) -> Result<(Vec<u8>, WorkerNotes), String> {
    let AdaptedComponent {
        component,
        kind,
        remark,
    } = adapter::componentize(file, wit)?;
    let proposals = WasmProposals::detect(&component)?;
    let (concurrency_kind, disabled_message) = match (
        check_exports(&component)?,
        concurrency::wasi_p3_requirements(&component),
    ) {
        (_, WasiP3Requirements::Unsupported(why)) => return Err(why),
        // The component has no async functions itself, and only uses something like a clock that is
        // read.
        (ComponentKind::Sync | ComponentKind::Async, WasiP3Requirements::Required) => {
            (ComponentKind::Async, WASI_P3_DISABLED_MESSAGE)
        }
        (checked, _) => (checked, ASYNC_DISABLED_MESSAGE),
    };
    let (engine, tasked) = match concurrency_kind {
        ComponentKind::Async if engines.allows_async => (
            engines.async_engine()?,
            Some(concurrency::count_async_instances(&component)?),
        ),
        ComponentKind::Async => return Err(disabled_message.to_owned()),
        // The engine that accepts more reports the most precise error.
        ComponentKind::Invalid if engines.allows_async => (engines.async_engine()?, None),
        ComponentKind::Sync | ComponentKind::Invalid => (engines.sync_engine.clone(), None),
    };
    let code = engine
        .precompile_component(&component)
        .map_err(|error| invalid_component_message(&error.root_cause().to_string()))?;
    if concurrency_kind == ComponentKind::Invalid {
        return Err(format!("{INVALID_PREFIX}its exports cannot be read"));
    }
    let mut notes = collect_notes(
        PluginSummary::new(kind, &proposals, &component, code.len()),
        &component,
        wit,
    );
    notes.remarks.extend(remark);
    Ok((code, WorkerNotes { tasked, ..notes }))
}

/// Returns the error message for an invalid component, with advice if there is any.
fn invalid_component_message(why: &str) -> String {
    let advice = if why.contains("legacy_exceptions") || why.contains("legacy exceptions") {
        LEGACY_EXCEPTIONS_ADVICE
    } else {
        ""
    };
    format!("{INVALID_PREFIX}{why}{advice}")
}

/// Input of the child.
struct WorkerInput {
    file: Vec<u8>,
    wit: String,
    /// The image of an instance, for [`WorkerJob::Snapshot`].
    rest: Vec<u8>,
}

fn read_input() -> io::Result<WorkerInput> {
    let mut stdin = io::stdin().lock();
    let mut part = || {
        let mut length = [0; 8];
        stdin.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        stdin
            .by_ref()
            .take(u64::from_le_bytes(length))
            .read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let file = part()?;
    let wit = part()?;
    let wit = String::from_utf8(wit)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut rest = Vec::new();
    stdin.read_to_end(&mut rest)?;
    Ok(WorkerInput { file, wit, rest })
}

/// Returns the component with the state of a memory snapshot.
pub(crate) fn snapshot(file: Vec<u8>, wit: &str, image: &[u8]) -> Result<Vec<u8>, String> {
    let image =
        memory_snapshot::decode(image).ok_or("the state of the instance arrived incomplete")?;
    preinit::snapshot(file, wit, image)
}

fn collect_notes(about: PluginSummary, component: &[u8], wit: &str) -> WorkerNotes {
    let mut remarks = Vec::new();
    let parsed_docs = if wit.is_empty() {
        Ok(ComponentDocs::default())
    } else {
        ComponentDocs::from_wit(wit)
    };
    let wit_docs = parsed_docs.unwrap_or_else(|why| {
        remarks.push(format!("its .wit file is ignored: {}", join_lines(&why)));
        ComponentDocs::default()
    });
    let mut docs = ComponentDocs::from_component(component);
    docs.functions.extend(wit_docs.functions);
    let is_command = about
        .exports
        .iter()
        .any(|name| name.starts_with("wasi:cli/run@"));
    let speaks = is_command && mcp_detection::contains_mcp_words(component);
    WorkerNotes {
        docs,
        remarks,
        about,
        speaks,
        tasked: None,
    }
}

/// Encodes the notes for the parent, without the parts that are too long.
fn encode_notes(notes: WorkerNotes) -> Vec<u8> {
    let text = serde_json::to_vec(&notes).unwrap_or_default();
    if text.len() <= MAX_NOTES_BYTES {
        return text;
    }
    let remarks = vec!["its documentation is ignored: it is larger than 1 MiB".to_owned()];
    let notes = WorkerNotes {
        docs: ComponentDocs::default(),
        remarks,
        about: notes.about.truncate(),
        ..notes
    };
    serde_json::to_vec(&notes).unwrap_or_default()
}

fn set_limits(memory: u64, cpu: u64) -> io::Result<()> {
    let limits = [
        (Resource::As, memory, memory),
        // At the soft limit, SIGXCPU kills the child, which distinguishes this limit from an
        // external SIGKILL.
        (Resource::Cpu, cpu, cpu + 5),
        (Resource::Fsize, MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES),
        (Resource::Core, 0, 0),
    ];
    for (resource, current, maximum) in limits {
        // Do not exceed a lower limit that the operator has set.
        let hard_limit = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        setrlimit(
            resource,
            Rlimit {
                current: Some(current.min(hard_limit)),
                maximum: Some(maximum.min(hard_limit)),
            },
        )?;
    }
    // Calls have priority. If the kernel refuses, calls only become slower.
    let _ = nice(NICE);
    // If the parent is killed, the child must not continue to compile.
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn report_failure(code: u8, message: &str) -> ExitCode {
    drop(io::stderr().write_all(message.as_bytes()));
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_for_any_file() {
        let names: Vec<String> = (0..4000)
            .map(|n| format!("{n}{}", "x".repeat(100_000)))
            .collect();
        let about = PluginSummary {
            imports: names.clone(),
            exports: names,
            wit: Some("w".into()),
            ..PluginSummary::default()
        };
        let text = encode_notes(WorkerNotes {
            docs: ComponentDocs::default(),
            remarks: Vec::new(),
            about,
            speaks: false,
            tasked: Some(3),
        });
        assert!(text.len() <= MAX_NOTES_BYTES, "{}", text.len());
        let notes: WorkerNotes = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            (notes.about.imports.len(), notes.about.wit, notes.tasked),
            (1000, None, Some(3))
        );
    }
}
