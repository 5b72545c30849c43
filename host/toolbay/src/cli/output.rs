//! Printing: results go to standard output, everything else to standard error.

use std::io::Write as _;

/// Prints to standard output. A reader that closed it, as `head` does, is not an error.
pub(super) fn print(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}

/// Prints one line about the command itself to standard error.
pub(super) fn complain(text: &str) {
    note(&format!("toolbay: {text}"));
}

/// Prints one line to standard error, as it is.
pub(super) fn note(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
