//! Styles for terminal output. Print styled text with `anstream`, which omits the styles if the
//! output is not a terminal.

use std::fmt::{self, Display};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;

/// Text with a style.
#[derive(Clone, Copy, Debug)]
pub struct StyledText<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for StyledText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, text } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// Styles a heading.
pub fn bold<T: Display>(text: T) -> StyledText<T> {
    StyledText {
        style: Style::new().bold(),
        text,
    }
}

/// Styles less important text.
pub fn dim<T: Display>(text: T) -> StyledText<T> {
    StyledText {
        style: Style::new().dimmed(),
        text,
    }
}

/// Styles a success.
pub fn green<T: Display>(text: T) -> StyledText<T> {
    StyledText {
        style: AnsiColor::Green.on_default(),
        text,
    }
}

/// Styles a failure.
pub fn red<T: Display>(text: T) -> StyledText<T> {
    StyledText {
        style: AnsiColor::Red.on_default().bold(),
        text,
    }
}

/// Converts the result of a command-line program to its exit code. Prints an error.
#[allow(
    clippy::print_stderr,
    reason = "programs that talk to the person who runs them end like this"
)]
pub fn exit_code(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{} {error:#}", red("error:"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_ends_with_its_text() {
        assert_eq!(red("no").to_string(), "\x1b[1m\x1b[31mno\x1b[0m");
        assert_eq!(bold(7).to_string(), "\x1b[1m7\x1b[0m");
    }
}
