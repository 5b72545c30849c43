//! The entries that `export!` lists. The code that the macros generate uses these types.

use crate::complete::CompletionEntry;
use crate::prompt::PromptEntry;
use crate::readable::ResourceEntry;
use crate::tool::ToolEntry;

/// An item that a plugin offers: a tool, a prompt, a resource or a completion. The macros implement
/// it for an empty type with the name of the function.
#[diagnostic::on_unimplemented(
    message = "a plugin cannot offer this",
    label = "there is no `#[tool]`, `#[prompt]`, `#[resource]` or `#[completion]` above this function",
    note = "each name in `export!` is that of a function with one of these above it"
)]
pub trait Offer {
    /// The item's entry in the list.
    const ENTRY: Entry;
}

/// One item of the list that `export!` creates.
#[derive(Debug)]
pub enum Entry {
    /// A function with `#[tool]`.
    Tool(ToolEntry),
    /// A function with `#[prompt]`.
    Prompt(PromptEntry),
    /// A function with `#[resource]`.
    Resource(ResourceEntry),
    /// A function with `#[completion]`.
    Completion(CompletionEntry),
    /// A function whose attribute has a mistake. The compiler reports the mistake separately.
    Mistaken,
}

impl Entry {
    /// Returns the entry of an item.
    pub const fn of<T: Offer>() -> Self {
        T::ENTRY
    }
}

/// A stand-in for a name in `export!` that is not an item of a plugin. It does not implement
/// [`Offer`], so the compiler prints the message that is declared on that trait.
pub mod missing {
    /// A type that is not an item of a plugin.
    #[derive(Debug)]
    pub enum Candidate {}
}

/// Rejects a list in which two items of one kind have the same name.
///
/// # Panics
///
/// Panics if two items of one kind have the same name. `export!` calls this function at compile
/// time, where a panic is a compiler error.
pub const fn check_names(entries: &[Entry]) {
    let mut rest = entries;
    while let [entry, others @ ..] = rest {
        let mut after = others;
        while let [other, others @ ..] = after {
            match (entry, other) {
                (Entry::Tool(one), Entry::Tool(two)) => assert!(
                    !bytes_equal(one.name.as_bytes(), two.name.as_bytes()),
                    "two tools in `export!` have the same name: give one of them `#[tool(name = \"…\")]`"
                ),
                (Entry::Prompt(one), Entry::Prompt(two)) => assert!(
                    !bytes_equal(one.name.as_bytes(), two.name.as_bytes()),
                    "two prompts in `export!` have the same name: give one of them `#[prompt(name = \"…\")]`"
                ),
                (Entry::Resource(one), Entry::Resource(two)) => assert!(
                    !bytes_equal(one.uri.as_bytes(), two.uri.as_bytes()),
                    "two resources in `export!` have the same URI"
                ),
                (Entry::Completion(one), Entry::Completion(two)) => assert!(
                    !(bytes_equal(one.target.as_bytes(), two.target.as_bytes())
                        && bytes_equal(one.argument.as_bytes(), two.argument.as_bytes())),
                    "two functions in `export!` complete the same argument"
                ),
                _ => {}
            }
            after = others;
        }
        rest = others;
    }
}

/// Compares two slices. `==` cannot be used at compile time yet.
const fn bytes_equal(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([x, xs @ ..], [y, ys @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (xs, ys);
    }
    a.is_empty() && b.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Definition, Output};

    fn named(names: [&'static str; 3]) -> [Entry; 3] {
        names.map(|name| {
            Entry::Tool(ToolEntry {
                name,
                definition: || Definition::new("", ""),
                call: |_, _| Ok(Output::new()),
            })
        })
    }

    #[test]
    fn names_are_compared_as_a_whole() {
        check_names(&named(["a", "ab", "b"]));
        check_names(&named(["", "ab", "b"]));
        assert!(bytes_equal(b"ab", b"ab"));
        assert!(!bytes_equal(b"ab", b"a"));
    }

    #[test]
    #[should_panic(expected = "the same name")]
    fn a_name_given_twice_is_refused() {
        check_names(&named(["a", "b", "a"]));
    }
}
