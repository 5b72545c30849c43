//! The front matter of a file: YAML between two lines `---` at its beginning.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_saphyr::Options;
use toolbay_model::text::clean_line;

/// Maximum length of a parser message, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;

/// Maximum number of keys that a remark names.
const MAX_SHOWN_KEYS: usize = 5;

/// Maximum length of a key in a remark, in bytes.
const MAX_SHOWN_KEY_BYTES: usize = 64;

/// Front matter of a prompt.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FrontMatter {
    /// A display name.
    pub(crate) title: Option<String>,
    /// Purpose of the prompt.
    pub(crate) description: Option<String>,
    /// The arguments, in the order in which a client requests them.
    pub(crate) arguments: Option<Vec<PromptArgumentSpec>>,
    #[serde(flatten)]
    #[expect(
        clippy::zero_sized_map_values,
        reason = "the form in which serde has the other keys"
    )]
    other: BTreeMap<String, IgnoredAny>,
}

/// An argument of a prompt.
#[derive(Debug, Deserialize)]
pub(crate) struct PromptArgumentSpec {
    /// Its name.
    pub(crate) name: String,
    /// A display name.
    pub(crate) title: Option<String>,
    /// Meaning of the argument.
    pub(crate) description: Option<String>,
    /// If set, the prompt requires the argument.
    pub(crate) required: Option<bool>,
    #[serde(flatten)]
    #[expect(
        clippy::zero_sized_map_values,
        reason = "the form in which serde has the other keys"
    )]
    other: BTreeMap<String, IgnoredAny>,
}

impl FrontMatter {
    /// Parses the front matter of `text`, if there is one. Returns it with the text after it.
    ///
    /// # Errors
    ///
    /// Returns the number of the invalid line, and the reason.
    pub(crate) fn parse(text: &str) -> Result<(Self, &str), (u64, String)> {
        match split_front_matter(text)? {
            (Some(yaml), body) if !yaml.trim().is_empty() => Ok((
                parse_yaml(yaml, serde_saphyr::options! { with_snippet: false })?,
                body,
            )),
            (_, body) => Ok((Self::default(), body)),
        }
    }

    /// Returns a remark about the keys that Toolbay does not support, if there are any.
    pub(crate) fn unknown_keys_remark(&self) -> Option<String> {
        let arguments = self.arguments.iter().flatten();
        let arguments = arguments
            .flat_map(|argument| argument.other.keys().map(|key| format!("arguments.{key}")));
        let mut keys: Vec<String> = self.other.keys().cloned().chain(arguments).collect();
        keys.sort_unstable();
        keys.dedup();
        let shown_keys: Vec<String> = keys
            .iter()
            .take(MAX_SHOWN_KEYS)
            .map(|key| format!("`{}`", clean_line(key, MAX_SHOWN_KEY_BYTES)))
            .collect();
        match keys.len() {
            0 => None,
            1 => Some(format!(
                "the key {} is unknown and has no effect",
                shown_keys.join("")
            )),
            n if n > MAX_SHOWN_KEYS => Some(format!(
                "the keys {} and {} more are unknown and have no effect",
                shown_keys.join(", "),
                n - MAX_SHOWN_KEYS
            )),
            _ => Some(format!(
                "the keys {} are unknown and have no effect",
                shown_keys.join(", ")
            )),
        }
    }
}

/// Splits `text` into its unparsed front matter, if there is one, and the text after it.
///
/// # Errors
///
/// Returns the number of the invalid line, and the reason.
pub(crate) fn split_front_matter(text: &str) -> Result<(Option<&str>, &str), (u64, String)> {
    // Some editors begin files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|first| first.trim_end() == "---") else {
        return Ok((None, text));
    };
    let length: usize = lines
        .by_ref()
        .take_while(|line| line.trim_end() != "---")
        .map(str::len)
        .sum();
    let (yaml, rest) = text
        .split_at_checked(first.len() + length)
        .unwrap_or((text, ""));
    let yaml = yaml.get(first.len()..).unwrap_or_default();
    let Some((_, body)) = rest
        .split_once('\n')
        .or_else(|| rest.starts_with("---").then_some((rest, "")))
    else {
        return Err((
            1,
            "the front matter has no end: a line \"---\" is missing after it".to_owned(),
        ));
    };
    Ok((Some(yaml), body))
}

/// Parses front matter that begins on the second line of its file.
///
/// # Errors
///
/// Returns the number of the invalid line, and the reason.
pub(crate) fn parse_yaml<T: DeserializeOwned>(
    yaml: &str,
    options: Options,
) -> Result<T, (u64, String)> {
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        let message = error.without_snippet().to_string();
        // The caller already prints the position in front of the message.
        let first_line = message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default();
        (
            line + 1,
            clean_line(&reword_error(first_line), MAX_MESSAGE_BYTES),
        )
    })
}

/// Rewrites an error of the YAML library for readers who do not know the library.
fn reword_error(message: &str) -> String {
    let rewordings = [
        ("expected string scalar", "a text was expected here"),
        ("expected sequence start", "a list was expected here"),
        (
            "expected mapping start",
            "keys with values were expected here",
        ),
        (
            "mapping values are not allowed",
            "put a text that contains \": \" in quotes",
        ),
        ("missing field `name`", "an argument has no `name`"),
        ("invalid boolean", "true or false was expected here"),
        ("budget breached: Depth", "it is nested too deeply"),
        (
            "budget breached: Documents",
            "there can be only one document",
        ),
        (
            "budget breached",
            "it is too large when its aliases are expanded",
        ),
        (
            "alias replay limit",
            "it is too large when its aliases are expanded",
        ),
        (
            "YAML merge keys",
            "programs read merge keys (<<) in different ways: write out what they stand for",
        ),
        (
            "non-finite float",
            "a number must be finite: put a text in quotes",
        ),
        ("recursion limit", "it is nested too deeply"),
    ];
    if let Some(key) = message
        .strip_prefix("duplicate mapping key: ")
        .and_then(|rest| rest.split(',').next())
    {
        return format!("the key {key} is given twice");
    }
    rewordings
        .iter()
        .find(|(start, _)| message.starts_with(start))
        .map_or(message, |(_, text)| text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_and_without_front_matter() {
        let (matter, body) = FrontMatter::parse("---\ntitle: A\n---\nBody\n---\nmore").unwrap();
        assert_eq!(
            (matter.title.as_deref(), body),
            (Some("A"), "Body\n---\nmore")
        );
        let (matter, body) =
            FrontMatter::parse("\u{feff}---\r\ntitle: \"A: b\"\r\n---\r\nBody").unwrap();
        assert_eq!((matter.title.as_deref(), body), (Some("A: b"), "Body"));
        for (text, body) in [
            ("Body", "Body"),
            ("", ""),
            ("---\n---\nBody", "Body"),
            ("---\n\n---", ""),
            ("----\na", "----\na"),
        ] {
            let (matter, rest) = FrontMatter::parse(text).unwrap();
            assert!(
                matter.title.is_none() && matter.arguments.is_none(),
                "{text}"
            );
            assert_eq!(rest, body, "{text}");
        }
    }

    #[test]
    fn arguments_are_a_list() {
        let text = "---\ndescription: >\n  Reviews\n  code.\narguments:\n  - name: code\n    required: true\n  - name: language\n    title: Language\n    description: Of the code\n---\n";
        let (matter, _) = FrontMatter::parse(text).unwrap();
        assert_eq!(matter.description.as_deref(), Some("Reviews code.\n"));
        let arguments = matter.arguments.unwrap();
        assert_eq!(
            (arguments[0].name.as_str(), arguments[0].required),
            ("code", Some(true))
        );
        assert_eq!(
            (arguments[1].description.as_deref(), arguments[1].required),
            (Some("Of the code"), None)
        );
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let bomb = format!(
            "---\na0: &a0 [x]\n{}---\n",
            (1..40)
                .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]", n - 1))
                .collect::<Vec<_>>()
                .join("\n")
                + "\n"
        );
        let deep = format!("---\na: {}\n---\n", "[".repeat(100_000));
        let texts = [
            "---\ntitle: A\n",
            "---\ntitle: A\ndescription: \"B\n---\n",
            "---\ntitle: [A]\n---\n",
            "---\ntitle: A\ntitle: B\n---\n",
            "---\narguments: code\n---\n",
            "---\narguments:\n  - code\n---\n",
            "---\narguments:\n  - title: A\n---\n",
            "---\narguments:\n  - name: a\n    required: maybe\n---\n",
            "---\n- a\n---\n",
            &bomb,
            &deep,
        ];
        let said: Vec<String> = texts
            .iter()
            .map(|text| {
                let (line, why) = FrontMatter::parse(text).unwrap_err();
                format!("{line}: {why}")
            })
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        1: the front matter has no end: a line "---" is missing after it
        3: unclosed quote
        2: a text was expected here
        3: the key title is given twice
        2: a list was expected here
        3: keys with values were expected here
        3: an argument has no `name`
        4: true or false was expected here
        2: keys with values were expected here
        11: it is too large when its aliases are expanded
        2: it is nested too deeply
        "#);
    }

    #[test]
    fn keys_of_other_programs_are_named() {
        let said = |text: &str| FrontMatter::parse(text).unwrap().0.unknown_keys_remark();
        assert_eq!(said("---\ntitle: A\n---\n"), None);
        assert_eq!(
            said("---\nmode: a\n---\n").unwrap(),
            "the key `mode` is unknown and has no effect"
        );
        assert_eq!(
            said("---\nmode: a\narguments: [{name: a, kind: b}, {name: b, kind: c}]\n---\n")
                .unwrap(),
            "the keys `arguments.kind`, `mode` are unknown and have no effect"
        );
        let many = (0..10)
            .map(|n| format!("k{n}: 1\n"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(
            said(&format!("---\n{many}---\n")).unwrap(),
            "the keys `k0`, `k1`, `k2`, `k3`, `k4` and 5 more are unknown and have no effect"
        );
    }
}
