//! Parameters that are parsed from text: the arguments of prompts and the variables of resource
//! templates.

use crate::{Error, Result};

/// The type of a parameter of a function with `#[prompt]`, or of a variable in the URI of a
/// `#[resource]`.
///
/// It is implemented for `String`, `bool`, `char`, the numbers, and `Option` of each. An `Option`
/// is an argument that a client may omit. You can implement it for your own types, such as an enum:
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// enum Tone {
///     Friendly,
///     Formal,
/// }
///
/// impl Argument for Tone {
///     fn parse(text: &str) -> std::result::Result<Self, String> {
///         match text {
///             "friendly" => Ok(Self::Friendly),
///             "formal" => Ok(Self::Formal),
///             _ => Err("it must be `friendly` or `formal`".to_owned()),
///         }
///     }
/// }
///
/// /// Asks for a letter.
/// #[prompt]
/// fn letter(tone: Tone) -> String {
///     let tone = match tone {
///         Tone::Friendly => "warm",
///         Tone::Formal => "polite",
///     };
///     format!("Write a {tone} letter.")
/// }
/// # export!(letter);
/// # fn main() {}
/// ```
pub trait Argument: Sized {
    /// True if a client must pass the argument.
    const REQUIRED: bool = true;

    /// Parses the value.
    ///
    /// # Errors
    ///
    /// Returns a description of the expected text, such as "it must be a number".
    fn parse(text: &str) -> std::result::Result<Self, String>;

    /// Returns the value for a client that omits the argument, or `None` if the argument is
    /// required.
    fn absent() -> Option<Self> {
        None
    }
}

impl Argument for String {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl<T: Argument> Argument for Option<T> {
    const REQUIRED: bool = false;

    fn parse(text: &str) -> std::result::Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

macro_rules! arguments {
    ($what:literal: $($type:ty)+) => {
        $(impl Argument for $type {
            fn parse(text: &str) -> std::result::Result<Self, String> {
                text.trim().parse().map_err(|_| concat!("it must be ", $what).to_owned())
            }
        })+
    };
}

arguments!("an integer within its range": u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
arguments!("a number": f32 f64);
arguments!("`true` or `false`": bool);
arguments!("one character": char);

/// Parses the argument `name` of a request.
pub fn argument<T: Argument>(given: &[(String, String)], name: &str) -> Result<T> {
    match given.iter().find(|(key, _)| key == name) {
        Some((_, text)) => T::parse(text)
            .map_err(|why| Error::invalid_arguments(format_args!("`{name}`: {why}, not {text:?}"))),
        None => T::absent().ok_or_else(|| {
            Error::invalid_arguments(format_args!("the argument `{name}` is missing"))
        }),
    }
}

/// Returns whether an argument of this type is required.
pub const fn is_required<T: Argument>() -> bool {
    T::REQUIRED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, text: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), text.to_owned())]
    }

    #[test]
    fn an_argument_is_read_as_its_type() {
        assert_eq!(argument::<String>(&given("a", " b "), "a").unwrap(), " b ");
        assert_eq!(argument::<u8>(&given("a", " 7 "), "a").unwrap(), 7);
        assert_eq!(
            argument::<Option<bool>>(&given("a", "true"), "a").unwrap(),
            Some(true)
        );
        assert_eq!(argument::<Option<char>>(&[], "a").unwrap(), None);
        assert!(is_required::<f64>() && !is_required::<Option<f64>>());
    }

    #[test]
    fn a_mistake_names_the_argument() {
        let error = argument::<u8>(&given("a", "256"), "a").unwrap_err();
        assert_eq!(
            error.message(),
            "`a`: it must be an integer within its range, not \"256\""
        );
        let error = argument::<String>(&given("a", "b"), "b").unwrap_err();
        assert_eq!(error.message(), "the argument `b` is missing");
        assert!(error.is_invalid_arguments());
    }
}
