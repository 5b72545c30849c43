//! How text is marked for people. Print it by `anstream`, which leaves the marks out where no person reads.

use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

/// Text in a style.
#[derive(Clone, Copy, Debug)]
pub struct Marked<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Marked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, text } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// A heading.
pub fn bold<T: Display>(text: T) -> Marked<T> {
    Marked { style: Style::new().bold(), text }
}

/// What matters less.
pub fn dim<T: Display>(text: T) -> Marked<T> {
    Marked { style: Style::new().dimmed(), text }
}

/// What went well.
pub fn green<T: Display>(text: T) -> Marked<T> {
    Marked { style: AnsiColor::Green.on_default(), text }
}

/// What went wrong.
pub fn red<T: Display>(text: T) -> Marked<T> {
    Marked { style: AnsiColor::Red.on_default().bold(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_ends_where_the_text_does() {
        assert_eq!(red("no").to_string(), "\x1b[1m\x1b[31mno\x1b[0m");
        assert_eq!(bold(7).to_string(), "\x1b[1m7\x1b[0m");
    }
}
