//! Reads TOML files and reports mistakes so that they are easy to fix: file, line, key, and what
//! was expected.

use std::fmt;

use serde::de::DeserializeOwned;

/// Mistake in a TOML text, with its position.
#[derive(Debug)]
pub struct TomlMistake {
    line: usize,
    column: usize,
    /// Key, unless the message contains it.
    key: Option<String>,
    /// Description of the mistake and of the expected value.
    pub message: String,
}

impl fmt::Display for TomlMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Parses `text`. `name` is the file name for messages.
///
/// # Errors
///
/// Returns one line: `name:line:column: key: description`, with the nearest valid key if a key is
/// unknown.
pub fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    parse_document(text).map_err(|mistake| format!("{name}:{mistake}"))
}

/// Parses `text`.
///
/// # Errors
///
/// Returns the first mistake in the text.
pub fn parse_document<T: DeserializeOwned>(text: &str) -> Result<T, TomlMistake> {
    let mistake = |error: &toml::de::Error, key: Option<String>| {
        let (line, column) = error
            .span()
            .map_or((1, 1), |span| position(text, span.start));
        let message = explain(error.message());
        // The message already contains an unknown key.
        TomlMistake {
            line,
            column,
            key: key.filter(|_| !message.starts_with("unknown key")),
            message,
        }
    };
    let document = toml::Deserializer::parse(text).map_err(|error| mistake(&error, None))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let key = Some(error.path().to_string()).filter(|path| path != ".");
        mistake(error.inner(), key)
    })
}

/// Returns the names of the keys of a table. Empty if its type accepts any key.
pub fn key_names<T: DeserializeOwned>() -> Vec<String> {
    // The only way in which serde lists the keys of a type.
    let unknown = toml::from_str::<T>("\"no such key\" = 1").err();
    let message = unknown.map_or_else(String::new, |error| error.message().to_owned());
    let Some(rest) = message.strip_prefix("unknown field `no such key`") else {
        return Vec::new();
    };
    rest.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

impl TomlMistake {
    /// Adds where an unknown key belongs, if it is a key of exactly one other table. `tables` are
    /// the names of tables, with the names of their keys. The name of the top level is empty.
    #[must_use]
    pub fn with_table_hint(mut self, tables: &[(&str, Vec<String>)]) -> Self {
        let unknown = self
            .message
            .strip_prefix("unknown key `")
            .and_then(|rest| rest.split('`').next());
        let Some(unknown) = unknown.map(str::to_owned) else {
            return self;
        };
        let mut fitting = tables
            .iter()
            .filter(|(_, keys)| keys.contains(&unknown))
            .map(|(table, _)| *table);
        if let (Some(table), None) = (fitting.next(), fitting.next()) {
            self.message = if table.is_empty() {
                format!("unknown key `{unknown}` in this table; it belongs before the first table")
            } else {
                format!("unknown key `{unknown}` in this place; it belongs in [{table}]")
            };
        }
        self
    }
}

/// Returns the line and column of a byte offset, both starting at 1.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}

/// Rewrites messages of serde, which use Rust's terms, as advice. Returns other messages unchanged.
fn explain(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown field `") {
        return unknown_key(rest);
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ")
        && let Some((found, expected)) = rest.split_once(", expected ")
    {
        return format!(
            "expected {}, not {}",
            expected.replace('`', "\""),
            found.replace('`', "\"")
        );
    }
    if let Some(rest) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        return format!(
            "expected {}, not {}",
            describe_expected(expected),
            describe_found(found)
        );
    }
    message.replace('\n', "; ")
}

/// Describes the value that serde expected, without Rust's terms.
fn describe_expected(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a string" | "path string" | "string or table" => "a string in quotes",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        expected => expected,
    }
}

/// Describes the value that serde found, without Rust's terms.
fn describe_found(found: &str) -> String {
    match found.split_once(' ') {
        // Serde already quotes strings.
        Some(("string", text)) => text.to_owned(),
        Some(("integer" | "boolean", value)) => value.replace('`', ""),
        Some(("floating", value)) => value.trim_start_matches("point ").replace('`', ""),
        _ if found == "map" => "a table".to_owned(),
        _ if found == "sequence" => "a list".to_owned(),
        _ => found.to_owned(),
    }
}

/// Returns advice about an unknown key. `rest` is the rest of serde's message.
fn unknown_key(rest: &str) -> String {
    let mut quoted = rest.split('`').step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    match nearest(unknown, &known) {
        Some(key) => format!("unknown key `{unknown}`; did you mean `{key}`?"),
        None if known.is_empty() => format!("unknown key `{unknown}`; this table has no keys"),
        None => format!(
            "unknown key `{unknown}`; valid keys are {}",
            known.join(", ")
        ),
    }
}

/// Returns the known word that `word` most likely stands for.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        // Below 0.8, a suggestion is more often wrong than right.
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use toolbay_model::LimitsPatch;

    use super::*;

    #[test]
    fn an_unknown_key_is_reported_with_its_place_and_the_most_similar_key() {
        let error = parse::<LimitsPatch>("spin.toml", "fuel = 1\ntimeuot = \"1s\"").unwrap_err();
        assert_eq!(
            error,
            "spin.toml:2:1: unknown key `timeuot`; did you mean `timeout`?"
        );
    }

    #[test]
    fn a_key_of_another_table_is_reported_with_that_table() {
        let limits = key_names::<LimitsPatch>();
        assert!(limits.contains(&"fuel".to_owned()), "{limits:?}");
        assert_eq!(
            key_names::<std::collections::BTreeMap<String, u64>>(),
            [""; 0]
        );
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let tables = [
            ("", owned(&["prefix"])),
            ("http", owned(&["both"])),
            ("tcp", owned(&["both", "host"])),
        ];
        let report = |text: &str| {
            let mistake = parse_document::<LimitsPatch>(text).unwrap_err();
            mistake.with_table_hint(&tables).to_string()
        };
        assert_eq!(
            report("fuel = 1\nhost = 2"),
            "2:1: unknown key `host` in this place; it belongs in [tcp]"
        );
        assert_eq!(
            report("prefix = 2"),
            "1:1: unknown key `prefix` in this table; it belongs before the first table"
        );
        assert!(report("both = 2").contains("valid keys are"));
        assert!(report("fuel = \"much\"").starts_with("1:8: fuel: "));
    }

    #[test]
    fn a_key_that_resembles_no_other_lists_all_keys() {
        let error = parse::<LimitsPatch>("spin.toml", "zzz = 1").unwrap_err();
        assert!(
            error.starts_with(
                "spin.toml:1:1: unknown key `zzz`; valid keys are fuel, timeout, memory"
            ),
            "{error}"
        );
    }
}
