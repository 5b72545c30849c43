//! Colour where a person reads, none where a program does.

use std::fmt::Display;
use std::io::IsTerminal;

/// How text is marked on one stream.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

/// The style of standard output.
pub(crate) fn stdout() -> Style {
    Style::of(&std::io::stdout())
}

/// The style of standard error.
pub(crate) fn stderr() -> Style {
    Style::of(&std::io::stderr())
}

impl Style {
    fn of(stream: &impl IsTerminal) -> Self {
        // <https://no-color.org>: set, and not to nothing.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: stream.is_terminal() && !refused }
    }

    /// A heading.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.mark("1", text)
    }

    /// What matters less.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.mark("2", text)
    }

    /// What went well.
    pub(crate) fn green(self, text: impl Display) -> String {
        self.mark("32", text)
    }

    /// What went wrong.
    pub(crate) fn red(self, text: impl Display) -> String {
        self.mark("1;31", text)
    }

    fn mark(self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Style { colour: false }.red("no"), "no");
        assert_eq!(Style { colour: true }.red("no"), "\x1b[1;31mno\x1b[0m");
    }
}
