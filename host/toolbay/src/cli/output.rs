//! Printing: results go to standard output, everything else to standard error.

use std::io::{ErrorKind, Write as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use toolbay_model::text::{clean, escaped};

/// Prints a message for people to standard error.
pub(super) use crate::stderr::say as complain;

/// Prints a message to standard error without the name of the program.
pub(super) use crate::stderr::print as note;

/// Something could not be printed.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// Prints text to standard output, without control characters: parts of it come from plugins. A reader that closed it, as
/// `head` does, is not an error.
pub(super) fn print(text: &str) {
    write(&clean(text));
}

/// Prints a value as JSON to standard output.
///
/// # Errors
///
/// It is not JSON.
pub(super) fn print_json(value: &impl Serialize) -> serde_json::Result<()> {
    write(&(escaped(&serde_json::to_string_pretty(value)?) + "\n"));
    Ok(())
}

/// Whether everything could be printed.
pub(super) fn all_printed() -> bool {
    !UNPRINTED.load(Ordering::Relaxed)
}

fn write(text: &str) {
    let mut stdout = stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe && !UNPRINTED.swap(true, Ordering::Relaxed) => {
            complain(&format!("failed to write to standard output: {error}"));
        }
        _ => {}
    }
}
