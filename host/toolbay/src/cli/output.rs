//! Output functions. Results go to standard output, everything else to standard error.

use std::io::{ErrorKind, IsTerminal as _, Write as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use toolbay_model::text::{clean, escape_json};

/// Prints a message for people to standard error.
pub(super) use crate::process::stderr::print_message as complain;

/// Prints a message to standard error without the name of the program.
pub(super) use crate::process::stderr::print_lines as note;

/// Waits briefly until all messages are written, so that they come before later results.
pub(super) use crate::process::stderr::flush as flush_messages;

/// True if writing to standard output has failed.
static PRINT_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints text to standard output, without control characters, because parts of it come from
/// plugins. A closed reader, such as `head`, is not an error.
pub(super) fn print(text: &str) {
    write_stdout(clean(text).as_bytes());
}

/// Prints a value as JSON to standard output.
///
/// # Errors
///
/// The value cannot be represented as JSON.
pub(super) fn print_json(value: &impl Serialize) -> serde_json::Result<()> {
    write_stdout((escape_json(&serde_json::to_string_pretty(value)?) + "\n").as_bytes());
    Ok(())
}

/// Prints bytes from a plugin to standard output. On a terminal, control characters are removed.
pub(super) fn print_bytes(bytes: &[u8]) {
    if stdout().is_terminal() {
        print(&(String::from_utf8_lossy(bytes).into_owned() + "\n"));
    } else {
        write_stdout(bytes);
    }
}

/// Prints the program's own text verbatim.
pub(super) fn print_verbatim(bytes: &[u8]) {
    write_stdout(bytes);
}

/// Returns whether all output was written.
pub(super) fn has_printed_all() -> bool {
    !PRINT_FAILED.load(Ordering::Relaxed)
}

fn write_stdout(bytes: &[u8]) {
    let mut stdout = stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error)
            if error.kind() != ErrorKind::BrokenPipe
                && !PRINT_FAILED.swap(true, Ordering::Relaxed) =>
        {
            complain(&format!("failed to write to standard output: {error}"));
        }
        _ => {}
    }
}

/// Returns a count with its noun, such as `no errors` or `2 errors`.
pub(super) fn count_noun(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
