//! Completion of arguments: suggested values.

use crate::bindings::toolbay::plugin::types;
use crate::{Context, Error, Result};

/// A function that completes an argument. `#[completion]` implements it for an empty type with the
/// name of the function, so that [`test::complete`](crate::test::complete) can name the function.
pub trait Complete {
    /// The name of the prompt, or the URI template.
    const TARGET: &'static str;

    /// The name of the argument.
    const ARGUMENT: &'static str;

    /// Suggests values of the argument. `value` is the text that the user has typed.
    fn complete(value: &str, given: &Given, context: &Context) -> Result<Completions>;
}

/// An item with arguments to complete: a prompt, or a resource with variables. The macros implement
/// it.
#[diagnostic::on_unimplemented(
    message = "this has no arguments to complete",
    label = "there is no `#[prompt]` or `#[resource]` above this function"
)]
pub trait Target {
    /// The name of the prompt, or the URI template.
    const TARGET: &'static str;
}

/// The other arguments of a completion request, which already have a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(pub(crate) Vec<(String, String)>);

impl Given {
    /// Returns the value of an argument.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Suggested values of an argument, best first. A client receives the first 100.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    pub(crate) values: Vec<String>,
    pub(crate) total: Option<u32>,
    pub(crate) has_more: bool,
}

impl Completions {
    /// Creates completions from these values.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Creates completions from the values that begin with `typed`, ignoring case.
    ///
    /// ```
    /// use toolbay_plugin::Completions;
    ///
    /// let completions = Completions::beginning_with("r", ["Python", "Ruby", "Rust"]);
    /// assert_eq!(completions.values(), ["Ruby", "Rust"]);
    /// ```
    pub fn beginning_with(
        typed: &str,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let typed = typed.to_lowercase();
        let values = values.into_iter().map(Into::into);
        Self::new(values.filter(|value: &String| value.to_lowercase().starts_with(&typed)))
    }

    /// Sets the total number of values.
    #[must_use]
    pub fn total(mut self, total: u32) -> Self {
        self.total = Some(total);
        self
    }

    /// Marks the list as incomplete: more values exist.
    #[must_use]
    pub fn and_more(mut self) -> Self {
        self.has_more = true;
        self
    }

    /// Returns the values.
    pub fn values(&self) -> &[String] {
        &self.values
    }
}

impl From<Completions> for types::Completions {
    fn from(completions: Completions) -> Self {
        let Completions {
            values,
            total,
            has_more,
        } = completions;
        Self {
            values,
            total,
            has_more,
        }
    }
}

/// The types that a function with `#[completion]` can return: [`Completions`], a list of strings,
/// or a `Result` of those.
#[diagnostic::on_unimplemented(
    message = "a completion cannot return `{Self}`",
    label = "not a list of values",
    note = "return `Completions`, `Vec<String>`, `Vec<&str>`, or a `Result` of those"
)]
pub trait IntoCompletions {
    /// Converts the value to the form that is passed to the host.
    fn into_completions(self) -> Result<Completions>;
}

impl IntoCompletions for Completions {
    fn into_completions(self) -> Result<Completions> {
        Ok(self)
    }
}

impl<S: Into<String>> IntoCompletions for Vec<S> {
    fn into_completions(self) -> Result<Completions> {
        Ok(Completions::new(self))
    }
}

impl<A: IntoCompletions, E: Into<Error>> IntoCompletions for Result<A, E> {
    fn into_completions(self) -> Result<Completions> {
        self.map_err(Into::into)?.into_completions()
    }
}

/// The entry of a completion in `export!`.
#[derive(Debug)]
pub struct CompletionEntry {
    pub(crate) target: &'static str,
    pub(crate) argument: &'static str,
    pub(crate) complete: fn(&str, &Given, &Context) -> Result<Completions>,
}

impl CompletionEntry {
    /// Creates the entry of one completion.
    pub const fn of<T: Complete>() -> Self {
        Self {
            target: T::TARGET,
            argument: T::ARGUMENT,
            complete: T::complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_can_say_that_there_are_more() {
        let completions = vec!["a", "b"]
            .into_completions()
            .unwrap()
            .total(7)
            .and_more();
        assert_eq!(completions.values(), ["a", "b"]);
        let types = types::Completions::from(completions);
        assert_eq!((types.total, types.has_more), (Some(7), true));
    }

    #[test]
    fn other_arguments_are_found_by_name() {
        let given = Given(vec![("a".into(), "1".into())]);
        assert_eq!((given.get("a"), given.get("b")), (Some("1"), None));
    }
}
