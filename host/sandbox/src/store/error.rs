//! Classification of wasmtime's errors.

use bytesize::ByteSize;
use toolbay_model::text::format_thousands;
use toolbay_model::{CallError, Limit, Limits};
use wasmtime::component::ResourceTableError;
use wasmtime::{GcHeapOutOfMemory, ThrownException, Trap};

use crate::capability::effects::EffectMismatch;
use crate::capability::input_request::MissingCapability;

/// Message for a guest whose tasks are deadlocked.
const DEADLOCK_MESSAGE: &str =
    "all of its async tasks wait for events that cannot occur (deadlock)";

/// Suffix of messages about a violated rule of the component model.
const COMPONENT_MODEL_NOTE: &str = "; this breaks a rule of the component model, so it is a mistake in the plugin or in the tool that made it, \
                    not in the server";

/// Message for an uncaught exception.
const UNCAUGHT_EXCEPTION_MESSAGE: &str = "it threw an exception that it does not catch";

/// Observations of the store during the call. They reveal the cause of a trap.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrapEvidence {
    /// True if the growth of a memory was denied.
    pub(crate) memory_refused: bool,
    /// True if the growth of a table was denied.
    pub(crate) table_refused: bool,
    /// The last lines of standard error.
    pub(crate) stderr: Option<String>,
}

/// Maps an error of wasmtime to the error that the caller receives.
pub(crate) fn classify(
    error: &wasmtime::Error,
    evidence: TrapEvidence,
    limits: &Limits,
    stack: ByteSize,
) -> CallError {
    // Limits that the host itself counts carry their own error.
    if let Some(&limit) = error.downcast_ref() {
        return CallError::limit(limit);
    }
    if let Some(incapable) = error.downcast_ref::<MissingCapability>() {
        return incapable.to_call_error();
    }
    if let Some(diverged) = error.downcast_ref::<EffectMismatch>() {
        return CallError::Failed(diverged.to_string());
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return CallError::limit(Limit::Fuel(limits.fuel)),
        Some(Trap::StackOverflow) => return CallError::limit(Limit::Stack(stack)),
        // The allocation exceeds the garbage-collected heap, or any possible heap.
        Some(Trap::AllocationTooLarge) => return CallError::limit(Limit::Memory(limits.memory)),
        Some(Trap::AsyncDeadlock) => {
            return CallError::Trap {
                cause: DEADLOCK_MESSAGE.to_owned(),
                stderr: evidence.stderr,
            };
        }
        _ => {}
    }
    if error.is::<GcHeapOutOfMemory<()>>() {
        return CallError::limit(Limit::Memory(limits.memory));
    }
    // A guest aborts if an allocation fails. The trap is then `unreachable`, but the cause is the
    // limit.
    if evidence.memory_refused {
        return CallError::limit(Limit::Memory(limits.memory));
    }
    if evidence.table_refused {
        return CallError::limit(Limit::TableElements(limits.table_elements));
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return CallError::limit(Limit::Handles(limits.handles));
    }
    if error.is::<ThrownException>()
        || matches!(error.downcast_ref(), Some(Trap::UncaughtException))
    {
        return CallError::Trap {
            cause: UNCAUGHT_EXCEPTION_MESSAGE.to_owned(),
            stderr: evidence.stderr,
        };
    }
    if let Some(&trap) = error.downcast_ref::<Trap>()
        && violates_component_model(trap)
    {
        return CallError::Trap {
            cause: format!("{root}{COMPONENT_MODEL_NOTE}", root = error.root_cause()),
            stderr: evidence.stderr,
        };
    }
    // Not the fault of the call: the pool has a slot for each admitted call, and a few more for
    // listing the items of plugins while they are loaded.
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return CallError::Internal(format!("no free slot in the instance pool: {error}"));
    }
    // wasmtime has no types for these errors. Tests with one guest per error pin their texts.
    let root = error.root_cause().to_string();
    if root.contains("fuel allocated for hostcalls") {
        return CallError::limit(Limit::Transfer(limits.transfer));
    }
    if root.starts_with("requested len ") && root.contains("exceeds limit") {
        return CallError::limit(Limit::Random(limits.random));
    }
    if root.contains("instance count too high") {
        return CallError::limit(Limit::Instances(limits.instances));
    }
    if root.contains("memory count too high") {
        return CallError::limit(Limit::Memories(limits.memories));
    }
    if let Some(&wasmtime_wasi::I32Exit(code)) = error.downcast_ref() {
        return match evidence.stderr {
            // Languages without exceptions fail in this way: they print the reason and exit.
            Some(stderr_text) if code != 0 => CallError::Failed(stderr_text),
            stderr => CallError::Trap {
                cause: format!("exited with code {code}"),
                stderr,
            },
        };
    }
    let note = if misuses_handle(&root) {
        COMPONENT_MODEL_NOTE
    } else {
        ""
    };
    CallError::Trap {
        cause: format!("{root}{note}"),
        stderr: evidence.stderr,
    }
}

/// Returns whether a trap means that the guest broke a rule of the component model, which its
/// author cannot see in the source.
fn violates_component_model(trap: Trap) -> bool {
    matches!(
        trap,
        Trap::CannotEnterComponent
            | Trap::CannotLeaveComponent
            | Trap::CannotBlockSyncTask
            | Trap::NoAsyncResult
            | Trap::InvalidChar
            | Trap::StringOutOfBounds
            | Trap::ListOutOfBounds
            | Trap::InvalidDiscriminant
            | Trap::UnalignedPointer
            | Trap::TaskCancelNotCancelled
            | Trap::TaskCancelOrReturnTwice
            | Trap::TaskReturnInvalid
            | Trap::SubtaskCancelAfterTerminal
            | Trap::SubtaskDropNotResolved
            | Trap::WaitableSetDropHasWaiters
            | Trap::WaitableSyncAndAsync
            | Trap::BackpressureOverflow
            | Trap::UnsupportedCallbackCode
            | Trap::ConcurrentFutureStreamOp
            | Trap::StreamOpTooBig
            | Trap::ReferenceCountOverflow
    )
}

/// Parts of the messages with which wasmtime reports a misused handle, stream or future. wasmtime
/// has no types for these errors.
const HANDLE_ERRORS: [&str; 17] = [
    "unknown handle index ",
    "used with the wrong type",
    "is not a resource",
    "is not an own resource",
    "cannot remove owned resource while borrowed",
    "cannot lift own resource from a borrow",
    "borrow handles still remain",
    "handle is ",
    "cannot remove busy ",
    "cannot drop busy ",
    "passed read end to ",
    "passed write end to ",
    "pointer not aligned",
    "cannot write after being notified",
    "cannot write to future after",
    "cannot read after being notified",
    "cannot read from future after",
];

/// Returns whether an error means that the guest misused a handle, a stream or a future.
fn misuses_handle(root: &str) -> bool {
    HANDLE_ERRORS.iter().any(|fragment| root.contains(fragment))
}

/// Describes a component that does not fit into the pool, in terms of the ceilings that determine
/// the pool. Returns `None` for any other error. wasmtime has no types for these errors. Tests with
/// one component per error pin their texts.
pub(crate) fn describe_too_large(root: &str) -> Option<String> {
    // Sizes may be hexadecimal, and some messages have an index before the two relevant numbers.
    let parse_number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let numbers: Vec<u64> = root
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(parse_number)
        .collect();
    let [.., requested, maximum] = numbers[..] else {
        return None;
    };
    let [size, largest] = [requested, maximum].map(|n| format_bytes(ByteSize::b(n)));
    let [asked, most] = [requested, maximum].map(format_thousands);
    if root.starts_with("memory has a minimum byte size") {
        return Some(initial_memory_message(&size, &largest));
    }
    if root.contains("has a minimum element size") {
        return Some(format!(
            "it needs a table of {asked} elements, but the server's ceiling is {most} (to allow more, raise \
             ceilings.table_elements)"
        ));
    }
    let (subject, key) = if root.contains("core module instances") {
        ("core instances", Some("ceilings.instances"))
    } else if root.contains("linear memories") || root.starts_with("defined memories count") {
        ("linear memories", Some("ceilings.memories"))
    } else if root.contains(" tables, which exceeds") || root.starts_with("defined tables count") {
        ("tables", None)
    } else {
        return None;
    };
    let advice = key
        .map(|key| format!(" (to allow more, raise {key})"))
        .unwrap_or_default();
    Some(format!(
        "it has {asked} {subject}, but the server's ceiling is {most}{advice}"
    ))
}

/// Formats the message about a component whose initial memory exceeds the ceiling.
pub(crate) fn initial_memory_message(size: &str, largest: &str) -> String {
    format!(
        "it starts with {size} of memory, but the server's ceiling is {largest} (to allow more, raise ceilings.memory)"
    )
}

pub(crate) fn format_bytes(n: ByteSize) -> String {
    n.display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_a_failure_if_standard_error_has_text_and_a_crash_otherwise() {
        let exit = |code, stderr: Option<&str>| {
            let evidence = TrapEvidence {
                stderr: stderr.map(str::to_owned),
                ..TrapEvidence::default()
            };
            classify(
                &wasmtime_wasi::I32Exit(code).into(),
                evidence,
                &Limits::default(),
                ByteSize::kib(512),
            )
        };
        let crash = |code, stderr: Option<&str>| CallError::Trap {
            cause: format!("exited with code {code}"),
            stderr: stderr.map(str::to_owned),
        };
        assert_eq!(
            exit(1, Some("no such city")),
            CallError::Failed("no such city".into())
        );
        assert_eq!(exit(1, None), crash(1, None));
        assert_eq!(exit(0, Some("done")), crash(0, Some("done")));
    }
}
