//! Slugs for URLs and file names.

use serde::{Deserialize, Serialize};
use toolbay_plugin::{JsonSchema, schemars};

/// What stands between the words of a name.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Separator {
    /// `-`, usual in URLs.
    #[default]
    Hyphen,
    /// `_`, usual in file names and identifiers.
    Underscore,
}

impl Separator {
    fn as_char(self) -> char {
        match self {
            Self::Hyphen => '-',
            Self::Underscore => '_',
        }
    }
}

/// Returns the words of `text` in lower case, as many as fit in `max_length` characters.
pub(crate) fn of(text: &str, separator: Separator, max_length: usize) -> String {
    // "don't" is one word, and its apostrophe is not part of a slug.
    let text = text.to_lowercase().replace(['\'', '’'], "");
    let mut slug = String::new();
    let mut length = 0;
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        let more = word.chars().count() + usize::from(length > 0);
        if length + more > max_length {
            if slug.is_empty() {
                // Not even the first word fits. A part of it is better than nothing.
                slug.extend(word.chars().take(max_length));
            }
            break;
        }
        if length > 0 {
            slug.push(separator.as_char());
        }
        slug.push_str(word);
        length += more;
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max_length: usize, expected: &str) {
        assert_eq!(of(text, Separator::Hyphen, max_length), expected);
    }

    #[test]
    fn punctuation_separates() {
        check("  Hello, World! -- 2nd try ", 80, "hello-world-2nd-try");
        check("Don’t panic", 80, "dont-panic");
        check("", 80, "");
    }

    #[test]
    fn letters_of_every_script_stay() {
        check("Grüße aus Łódź 東京", 80, "grüße-aus-łódź-東京");
    }

    #[test]
    fn it_is_cut_between_words() {
        check("one two three", 9, "one-two");
        check("one two three", 7, "one-two");
        check("one two three", 6, "one");
        check("internationalisation", 5, "inter");
    }

    #[test]
    fn the_separator_is_a_choice() {
        assert_eq!(of("a b", Separator::Underscore, 80), "a_b");
    }
}
