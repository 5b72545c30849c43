//! Errors of tools.

use crate::bindings::toolbay::plugin::types::Failure;
use std::fmt::{self, Debug, Display, Formatter};

/// The return type of a tool: `Result<Json<Count>>` is `Result<Json<Count>, Error>`.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call failed. The model reads the message and may try again, so state what is
/// wrong and what would be right.
///
/// `?` converts every `std::error::Error` into this type, with the messages of its sources:
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// fn port(text: &str) -> Result<u16> {
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(
///     port("http").unwrap_err().message(),
///     "invalid digit found in string",
/// );
/// ```
///
/// [`bail!`](crate::bail), [`ensure!`](crate::ensure) and [`invalid!`](crate::invalid) return an
/// error with your own message.
//
// It does not implement `std::error::Error`, because `From` below would then overlap with the
// standard library's `From<T> for T`.
#[derive(Clone)]
pub struct Error(pub(crate) Failure);

impl Error {
    /// Creates an error for a tool that could not do its work.
    pub fn msg(message: impl Display) -> Self {
        Self(Failure::Failed(message.to_string()))
    }

    /// Creates an error for arguments that match the schema but are invalid.
    ///
    /// It also accepts an error, so the function can be passed to `map_err`:
    ///
    /// ```
    /// # use toolbay_plugin::prelude::*;
    /// # fn host(text: &str) -> Result<std::net::IpAddr> {
    /// let host = text.parse().map_err(Error::invalid_arguments)?;
    /// # Ok(host) }
    /// # assert!(host("a").unwrap_err().is_invalid_arguments());
    /// ```
    pub fn invalid_arguments(message: impl Display) -> Self {
        Self(Failure::InvalidArguments(message.to_string()))
    }

    /// Prefixes the message with a description of the failed operation:
    /// `reading notes.md: no such file`.
    #[must_use]
    pub fn context(self, what: impl Display) -> Self {
        Self(match self.0 {
            Failure::InvalidArguments(message) => {
                Failure::InvalidArguments(format!("{what}: {message}"))
            }
            Failure::Failed(message) => Failure::Failed(format!("{what}: {message}")),
        })
    }

    /// Returns whether the arguments are invalid.
    pub fn is_invalid_arguments(&self) -> bool {
        matches!(self.0, Failure::InvalidArguments(_))
    }

    /// Returns the message for the model.
    pub fn message(&self) -> &str {
        match &self.0 {
            Failure::InvalidArguments(message) | Failure::Failed(message) => message,
        }
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            message.push_str(": ");
            message.push_str(&error.to_string());
            source = error.source();
        }
        Self::msg(message)
    }
}

impl Display for Error {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message())
    }
}

/// Like [`Display`], because `unwrap` in a test prints this.
impl Debug for Error {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, formatter)
    }
}

/// Adds a description of the failed operation to an error.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// fn port(text: &str) -> Result<u16> {
///     text.parse().with_context(|| format!("the port {text:?}"))
/// }
///
/// fn first(words: &[String]) -> Result<&String> {
///     words.first().context("there are no words")
/// }
///
/// assert_eq!(
///     port("http").unwrap_err().message(),
///     "the port \"http\": invalid digit found in string",
/// );
/// assert_eq!(first(&[]).unwrap_err().message(), "there are no words");
/// ```
pub trait WithContext<T> {
    /// Prefixes the error with a description, or creates an error from the description if there is
    /// no value. See [`Error::context`].
    ///
    /// # Errors
    ///
    /// Returns an error if this is an error or has no value.
    fn context(self, what: impl Display) -> Result<T>;

    /// Like [`context`](Self::context), with a description that is computed only if it is needed.
    ///
    /// # Errors
    ///
    /// Returns an error if this is an error or has no value.
    fn with_context<W: Display>(self, what: impl FnOnce() -> W) -> Result<T>;
}

impl<T, E: Into<Error>> WithContext<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| error.into().context(what))
    }

    fn with_context<W: Display>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|error| error.into().context(what()))
    }
}

impl<T> WithContext<T> for Option<T> {
    fn context(self, what: impl Display) -> Result<T> {
        self.ok_or_else(|| Error::msg(what))
    }

    fn with_context<W: Display>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.ok_or_else(|| Error::msg(what()))
    }
}

/// Returns [`Error::msg`] with a formatted message.
///
/// ```
/// # use toolbay_plugin::prelude::*;
/// fn answer(status: u16) -> Result<()> {
///     if status != 200 {
///         bail!("the server answered {status}");
///     }
///     Ok(())
/// }
/// assert_eq!(answer(404).unwrap_err().message(), "the server answered 404");
/// ```
#[macro_export]
macro_rules! bail {
    ($($message:tt)+) => {
        return ::core::result::Result::Err($crate::Error::msg(::core::format_args!($($message)+)))
    };
}

/// Returns [`Error::msg`] with a formatted message unless the condition holds.
///
/// ```
/// # use toolbay_plugin::prelude::*;
/// fn answer(status: u16) -> Result<()> {
///     ensure!(status == 200, "the server answered {status}");
///     Ok(())
/// }
/// assert!(answer(200).is_ok());
/// assert_eq!(answer(404).unwrap_err().message(), "the server answered 404");
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::bail!($($message)+);
        }
    };
}

/// Returns [`Error::invalid_arguments`] with a formatted message.
///
/// ```
/// # use toolbay_plugin::prelude::*;
/// fn half(number: u32) -> Result<u32> {
///     if number % 2 == 1 {
///         invalid!("`number` is even, not {number}");
///     }
///     Ok(number / 2)
/// }
/// assert!(half(3).unwrap_err().is_invalid_arguments());
/// ```
#[macro_export]
macro_rules! invalid {
    ($($message:tt)+) => {
        return ::core::result::Result::Err($crate::Error::invalid_arguments(
            ::core::format_args!($($message)+),
        ))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl Display for Layer {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl std::error::Error for Layer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|source| source as _)
        }
    }

    #[test]
    fn a_chain_becomes_one_line() {
        let error = Layer(
            "a",
            Some(Box::new(Layer("b", Some(Box::new(Layer("c", None)))))),
        );
        assert_eq!(Error::from(error).message(), "a: b: c");
    }

    #[test]
    fn the_two_kinds_are_distinguished() {
        assert!(Error::invalid_arguments("a").is_invalid_arguments());
        assert!(!Error::msg("a").is_invalid_arguments());
        assert_eq!(format!("{:?}", Error::msg("a")), "a");
        let invalid: Result<()> = Err(Error::invalid_arguments("a"));
        let invalid = invalid.context("b").unwrap_err();
        assert!(invalid.is_invalid_arguments());
        assert_eq!(invalid.message(), "b: a");
    }
}
