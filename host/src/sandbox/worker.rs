//! The compiling child: `toolbay compile-worker` reads a component and writes its compiled form.
//!
//! Compiling cannot be interrupted, and a component of a kilobyte can make it
//! take minutes and gigabytes. In a process of its own it has limits that the
//! operating system enforces, and what it does to itself it does to nobody else.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use bytesize::ByteSize;
use rustix::process::{Resource, Rlimit, nice, set_parent_process_death_signal, setrlimit};
use wasmtime::Engine;

use super::engine;

/// A compiled component is a small multiple of its source; more is a mistake.
const OUTPUT: u64 = 1 << 30;

/// How far a compile steps back: to about a tenth of a busy core. At 19, the
/// most, it is a sixtieth, and a plugin that is dropped beside busy tools would
/// not come up for minutes.
const NICE: i32 = 10;

/// The exit code that says: compiled, but the output could not be written.
pub(super) const UNWRITTEN: u8 = 3;

/// Compiles standard input to standard output, within `memory` bytes of address
/// space and `cpu` seconds. What is wrong with the input goes to standard error.
pub(crate) fn run(stack: ByteSize, memory: u64, cpu: u64) -> ExitCode {
    if let Err(error) = limit(memory, cpu) {
        return failed(&format!("the compiler could not be limited: {error}"));
    }
    let mut bytes = Vec::new();
    if let Err(error) = io::stdin().read_to_end(&mut bytes) {
        return failed(&format!("the compiler could not read the component: {error}"));
    }
    let engine = engine::compiler(stack).map_err(|error| error.root_cause().to_string());
    match engine.and_then(|engine| compile(&engine, &bytes)) {
        Ok(code) => match io::stdout().write_all(&code) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(UNWRITTEN),
        },
        Err(complaint) => failed(&complaint),
    }
}

/// The compiled form of a component, or what is wrong with it.
pub(super) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, String> {
    engine.precompile_component(bytes).map_err(|error| error.root_cause().to_string())
}

fn limit(memory: u64, cpu: u64) -> io::Result<()> {
    let limits = [
        (Resource::As, memory, memory),
        // At the first value the child dies of SIGXCPU, which tells this limit from a stranger's SIGKILL.
        (Resource::Cpu, cpu, cpu + 5),
        (Resource::Fsize, OUTPUT, OUTPUT),
        (Resource::Core, 0, 0),
    ];
    for (resource, current, maximum) in limits {
        setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
    }
    // Calls come first. The kernel may refuse; then they are only slower.
    let _ = nice(NICE);
    // A parent that is killed leaves no child compiling for nobody.
    #[cfg(target_os = "linux")]
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn failed(message: &str) -> ExitCode {
    drop(io::stderr().write_all(message.as_bytes()));
    ExitCode::FAILURE
}
