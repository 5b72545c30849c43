//! Asks the person at the terminal for a yes.

use std::io::{BufRead, IsTerminal as _, stderr, stdin};

use super::output::note;

/// Longest answer that is read, in bytes.
const LONGEST: u64 = 1_000;

/// Whether there is a terminal with somebody who can read the question and answer it.
pub(super) fn is_possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Prints the question on standard error, and reads the answer. Whatever is not a yes is a no.
pub(super) async fn ask(question: &str) -> bool {
    note(&format!("{question}\n\nAllow this call? Type y for yes, anything else for no:"));
    // On another thread: meanwhile, a signal can end the program.
    tokio::task::spawn_blocking(|| is_yes(stdin().lock())).await.unwrap_or(false)
}

/// Prints a question that says what to type on standard error, and reads the answer. Whatever is not a yes is a no.
pub(super) fn asked(question: &str) -> bool {
    note(question);
    is_yes(stdin().lock())
}

fn is_yes(input: impl BufRead) -> bool {
    let mut answer = String::new();
    let read = input.take(LONGEST).read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for yes in ["y\n", "Y\n", "yes\n", " YES \r\n", "y"] {
            assert!(is_yes(yes.as_bytes()), "{yes:?}");
        }
        let endless = "y".repeat(10_000);
        for no in ["", "\n", "n\n", "no\n", "yess\n", "y n\n", "\ny\n", "\u{1b}y\n", &endless] {
            assert!(!is_yes(no.as_bytes()), "{no:?}");
        }
        assert!(!is_yes(&[0xff, b'y', b'\n'][..]));
    }
}
