//! Prints the demo to the terminal: numbered parts, actions and observations.

use std::fmt::Display;
use std::time::Duration;

use anstream::println;
use toolbay_testkit::terminal;

/// Maximum length of a line, in characters.
const LINE_WIDTH: usize = 96;

/// The counter of the demo's parts.
pub(super) struct DemoPrinter {
    part: usize,
}

impl DemoPrinter {
    /// Creates a printer whose first part has the number 1.
    pub(super) fn new() -> Self {
        Self { part: 0 }
    }

    /// Prints the heading of the next part.
    pub(super) fn print_heading(&mut self, title: &str) {
        self.part += 1;
        println!("\n{}", terminal::bold(format!("{}  {title}", self.part)));
    }
}

/// Prints an action.
pub(super) fn print_action(text: impl Display) {
    for (n, line) in wrap_text(&text.to_string(), LINE_WIDTH - 5)
        .into_iter()
        .enumerate()
    {
        let mark = if n == 0 {
            terminal::dim("→")
        } else {
            terminal::dim(" ")
        };
        println!("   {mark} {line}");
    }
}

/// Prints an observation.
pub(super) fn print_observation(text: impl Display) {
    for (n, line) in wrap_text(&text.to_string(), LINE_WIDTH - 5)
        .into_iter()
        .enumerate()
    {
        let mark = if n == 0 {
            terminal::green("✓")
        } else {
            terminal::green(" ")
        };
        println!("   {mark} {line}");
    }
}

/// Prints the server's own output, unchanged.
pub(super) fn print_server_output(text: &str) {
    for line in wrap_text(text, LINE_WIDTH - 7) {
        println!("     {} {}", terminal::dim("|"), terminal::dim(line));
    }
}

/// Formats a duration in milliseconds, with one decimal place if it is below 10 ms.
pub(super) fn format_ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

/// Formats a number with thousands separators, such as 1,234,567.
pub(super) fn format_thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(format_thousands(7), "7");
        assert_eq!(format_thousands(123), "123");
        assert_eq!(format_thousands(10_000_000_000), "10,000,000,000");
        assert_eq!(format_ms(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(format_ms(Duration::from_micros(123_456)), "123 ms");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_text("unbreakable words", 4), ["unbreakable", "words"]);
        assert_eq!(wrap_text("", 4), Vec::<String>::new());
    }
}
