//! Why a call ended without an output, and the one place that says what a limit's message is.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use crate::limits::Limits;

/// Why a call ended without an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The plugin says that the arguments make no sense.
    InvalidArguments(String),
    /// The plugin says that the work could not be done, or ended its process with words about why.
    Failed(String),
    /// The call met a limit.
    Limit(Limit),
    /// The guest crashed: what happened, and the last thing it wrote to standard error.
    Trap {
        /// What happened, in wasmtime's words.
        what: String,
        /// The last lines of standard error, if any.
        stderr: Option<String>,
    },
    /// The output breaks the contract or the tool's output schema.
    InvalidOutput(String),
    /// Nobody waits for the answer any more.
    Cancelled,
    /// A fault of ours; the text is for the log alone.
    Internal(String),
}

impl fmt::Display for CallError {
    /// In the words of the log; the peer is told by `mcp/outcome`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArguments(text) => write!(f, "invalid arguments: {text}"),
            Self::Failed(text) | Self::Internal(text) => f.write_str(text),
            Self::Limit(limit) => f.write_str(&limit.message()),
            Self::Trap { what, stderr } => f.write_str(&crash(what, stderr.as_deref())),
            Self::InvalidOutput(what) => write!(f, "invalid output: {what}"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// What is said of a crash: first what the guest wrote last, which is where its
/// language says what went wrong, then what the sandbox saw.
pub(crate) fn crash(what: &str, stderr: Option<&str>) -> String {
    match stderr {
        Some(stderr) => format!("{stderr} ({what})"),
        None => what.to_owned(),
    }
}

/// A limit that a call met, with the value that it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::fuel`].
    Fuel(u64),
    /// [`Limits::timeout`].
    Deadline(Duration),
    /// [`Limits::memory`].
    Memory(ByteSize),
    /// The native stack, in bytes.
    Stack(ByteSize),
    /// [`Limits::output`].
    Output(ByteSize),
    /// [`Limits::output_items`].
    OutputItems(usize),
    /// [`Limits::transfer`].
    Transfer(ByteSize),
    /// [`Limits::stdio`].
    Stdio(ByteSize),
    /// [`Limits::handles`].
    Handles(usize),
    /// [`Limits::random`].
    Random(ByteSize),
    /// [`Limits::table_elements`].
    TableElements(usize),
    /// [`Limits::instances`].
    Instances(usize),
    /// [`Limits::memories`].
    Memories(usize),
}

impl Limit {
    /// The word for `_meta["dev.toolbay/error"]`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Fuel(_) => "fuel",
            Self::Deadline(_) => "deadline",
            Self::Memory(_) => "memory",
            Self::Stack(_) => "stack",
            Self::Output(_) | Self::OutputItems(_) | Self::Transfer(_) | Self::Stdio(_) => "output",
            Self::Handles(_) | Self::Random(_) | Self::TableElements(_) | Self::Instances(_) | Self::Memories(_) => {
                "trap"
            }
        }
    }

    /// One sentence: which limit, its value, and the key that raises it.
    pub fn message(self) -> String {
        match self {
            Self::Fuel(n) => {
                format!("The tool used up its fuel of {} instructions (limits.fuel raises it).", thousands(n))
            }
            Self::Deadline(t) => {
                format!("The tool did not finish within {} (limits.timeout raises it).", humantime::format_duration(t))
            }
            Self::Memory(n) => format!("The tool needed more memory than its {} (limits.memory raises it).", bytes(n)),
            Self::Stack(n) => format!(
                "The tool recursed deeper than its stack of {} allows (server.stack raises it for all plugins).",
                bytes(n)
            ),
            Self::Output(n) => {
                format!("The tool's result is larger than {} (limits.output raises it).", bytes(n))
            }
            Self::OutputItems(n) => format!(
                "The tool's result has more than {} content blocks (limits.output_items raises it).",
                thousands(n as u64)
            ),
            Self::Transfer(n) => {
                format!("The tool passed more than {} to the host at once (limits.transfer raises it).", bytes(n))
            }
            Self::Stdio(n) => {
                format!("The tool wrote more than {} to standard output and error (limits.stdio raises it).", bytes(n))
            }
            Self::Handles(n) => format!(
                "The tool held more than {} host resources open (limits.handles raises it).",
                thousands(n as u64)
            ),
            Self::Random(n) => {
                format!("The tool asked for more than {} of randomness at once (limits.random raises it).", bytes(n))
            }
            Self::TableElements(n) => format!(
                "The tool needed a table of more than {} elements (limits.table_elements raises it).",
                thousands(n as u64)
            ),
            Self::Instances(n) => format!(
                "The tool is made of more than {} core instances (limits.instances raises it).",
                thousands(n as u64)
            ),
            Self::Memories(n) => {
                format!("The tool has more than {} memories (limits.memories raises it).", thousands(n as u64))
            }
        }
    }
}

/// What the store saw while the guest ran, by which a trap can be told apart from its cause.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// A memory was refused its growth.
    pub(super) memory_refused: bool,
    /// A table was refused its growth.
    pub(super) table_refused: bool,
    /// Standard output and error went over their bound.
    pub(super) stdio_exceeded: bool,
    /// The last lines of standard error.
    pub(super) stderr: Option<String>,
}

/// Decides what an error of wasmtime means for the caller.
pub(super) fn classify(error: &wasmtime::Error, evidence: Evidence, limits: &Limits, stack: ByteSize) -> CallError {
    if evidence.stdio_exceeded {
        return CallError::Limit(Limit::Stdio(limits.stdio));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return CallError::Limit(Limit::Fuel(limits.fuel)),
        Some(Trap::StackOverflow) => return CallError::Limit(Limit::Stack(stack)),
        _ => {}
    }
    // A guest whose allocation failed aborts: the trap is `unreachable`, the cause is the limit.
    if evidence.memory_refused {
        return CallError::Limit(Limit::Memory(limits.memory));
    }
    if evidence.table_refused {
        return CallError::Limit(Limit::TableElements(limits.table_elements));
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return CallError::Limit(Limit::Handles(limits.handles));
    }
    // More guests than admission lets in: loading plugins hold some of the slots for calls.
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return CallError::Internal(format!("no slot for a guest was free: {error}"));
    }
    // wasmtime has no types for these; their words are pinned by tests with a guest each.
    let root = error.root_cause().to_string();
    if root.contains("fuel allocated for hostcalls") {
        return CallError::Limit(Limit::Transfer(limits.transfer));
    }
    if root.starts_with("requested len ") && root.contains("exceeds limit") {
        return CallError::Limit(Limit::Random(limits.random));
    }
    if root.contains("instance count too high") {
        return CallError::Limit(Limit::Instances(limits.instances));
    }
    if root.contains("memory count too high") {
        return CallError::Limit(Limit::Memories(limits.memories));
    }
    if let Some(&wasmtime_wasi::I32Exit(code)) = error.downcast_ref() {
        return match evidence.stderr {
            // How languages without exceptions give up: they say why, and end the process.
            Some(words) if code != 0 => CallError::Failed(words),
            stderr => CallError::Trap { what: format!("it exited with code {code}"), stderr },
        };
    }
    CallError::Trap { what: root, stderr: evidence.stderr }
}

/// What to say of a component that the pool has no room for, by the ceilings that it was made by; `None` for any other
/// error. wasmtime has no types for these; their words are pinned by a test with a component each.
pub(super) fn too_large(root: &str) -> Option<String> {
    // Sizes may be hexadecimal, and some have an index before the two that count.
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let numbers: Vec<u64> = root.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(number).collect();
    let [.., asked, most] = numbers[..] else { return None };
    let [size, largest] = [asked, most].map(|n| bytes(ByteSize::b(n)));
    let [asked, most] = [asked, most].map(thousands);
    if root.starts_with("memory has a minimum byte size") {
        return Some(format!(
            "it needs {size} of memory to begin with, and the server's ceiling is {largest} (ceilings.memory raises it)"
        ));
    }
    if root.contains("has a minimum element size") {
        return Some(format!(
            "it needs a table of {asked} elements, and the server's ceiling is {most} (ceilings.table_elements raises it)"
        ));
    }
    let (what, key) = if root.contains("core module instances") {
        ("core instances", Some("ceilings.instances"))
    } else if root.contains("linear memories") || root.starts_with("defined memories count") {
        ("memories", Some("ceilings.memories"))
    } else if root.contains(" tables, which exceeds") || root.starts_with("defined tables count") {
        ("tables", None)
    } else {
        return None;
    };
    let cure = key.map(|key| format!(" ({key} raises it)")).unwrap_or_default();
    Some(format!("it has {asked} {what}, and the server's ceiling is {most}{cure}"))
}

/// `10_000` as `10,000`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn bytes(n: ByteSize) -> String {
    n.display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_a_failure_if_it_has_words_and_a_crash_if_it_has_none() {
        let exit = |code, stderr: Option<&str>| {
            let evidence = Evidence { stderr: stderr.map(str::to_owned), ..Evidence::default() };
            classify(&wasmtime_wasi::I32Exit(code).into(), evidence, &Limits::default(), ByteSize::kib(512))
        };
        let crash = |code, stderr: Option<&str>| CallError::Trap {
            what: format!("it exited with code {code}"),
            stderr: stderr.map(str::to_owned),
        };
        assert_eq!(exit(1, Some("no such city")), CallError::Failed("no such city".into()));
        assert_eq!(exit(1, None), crash(1, None));
        assert_eq!(exit(0, Some("done")), crash(0, Some("done")));
    }

    #[test]
    fn every_limit_names_its_value_and_its_key() {
        let limits = [
            (Limit::Fuel(10_000_000_000), "10,000,000,000", "limits.fuel"),
            (Limit::Deadline(Duration::from_secs(90)), "1m 30s", "limits.timeout"),
            (Limit::Memory(ByteSize::mib(128)), "128.0 MiB", "limits.memory"),
            (Limit::Stack(ByteSize::kib(512)), "512.0 KiB", "server.stack"),
            (Limit::Output(ByteSize::mib(1)), "1.0 MiB", "limits.output"),
            (Limit::OutputItems(1000), "1,000", "limits.output_items"),
            (Limit::Transfer(ByteSize::mib(16)), "16.0 MiB", "limits.transfer"),
            (Limit::Stdio(ByteSize::mib(8)), "8.0 MiB", "limits.stdio"),
            (Limit::Handles(1000), "1,000", "limits.handles"),
            (Limit::Random(ByteSize::kib(64)), "64.0 KiB", "limits.random"),
            (Limit::TableElements(20_000), "20,000", "limits.table_elements"),
            (Limit::Instances(40), "40", "limits.instances"),
            (Limit::Memories(8), "8", "limits.memories"),
        ];
        for (limit, value, key) in limits {
            let message = limit.message();
            assert!(message.contains(value) && message.contains(key), "{message}");
        }
    }
}
