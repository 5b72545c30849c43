//! Confirmation questions on the terminal.

use std::io::{BufRead, IsTerminal as _, stderr, stdin};

use super::output::note;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 1_000;

/// Returns whether a person can read a question and answer it on a terminal.
pub(super) fn is_possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Prints a question about a call to standard error, and returns whether the answer is yes. Any
/// other answer counts as no.
pub(super) async fn ask_to_allow(question: &str) -> bool {
    note(&format!(
        "{question}\n\nAllow this call? Type y for yes, anything else for no:"
    ));
    // Reads on another thread, so that a signal can end the program meanwhile.
    tokio::task::spawn_blocking(|| is_yes(stdin().lock()))
        .await
        .unwrap_or(false)
}

/// Prints a question, which includes the expected input, to standard error. Returns whether the
/// answer is yes. Any other answer counts as no.
pub(super) fn ask_blocking(question: &str) -> bool {
    note(question);
    is_yes(stdin().lock())
}

/// Prints a question to standard error, and returns the line that a person types.
pub(super) fn ask_for_line(question: &str) -> String {
    note(question);
    read_line(stdin().lock()).unwrap_or_default()
}

fn is_yes(input: impl BufRead) -> bool {
    read_line(input)
        .is_ok_and(|answer| matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn read_line(input: impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    input.take(MAX_ANSWER_BYTES).read_line(&mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_accepted() {
        for yes in ["y\n", "Y\n", "yes\n", " YES \r\n", "y"] {
            assert!(is_yes(yes.as_bytes()), "{yes:?}");
        }
        let endless = "y".repeat(10_000);
        for no in [
            "",
            "\n",
            "n\n",
            "no\n",
            "yess\n",
            "y n\n",
            "\ny\n",
            "\u{1b}y\n",
            &endless,
        ] {
            assert!(!is_yes(no.as_bytes()), "{no:?}");
        }
        assert!(!is_yes(&[0xff, b'y', b'\n'][..]));
    }
}
