//! Reading a TOML file so that a mistake in it is easy to mend: file, line, and the nearest valid key.

use serde::de::DeserializeOwned;

/// Parses `text`, the content of the file that people know as `name`.
///
/// # Errors
///
/// One line: `name:line:column: what was wrong`, with the nearest valid key
/// when a key is unknown.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = error.span().map_or((1, 1), |span| position(text, span.start));
        format!("{name}:{line}:{column}: {}", explain(error.message()))
    })
}

/// Line and column, both from 1, of a byte offset.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Rewrites serde's "unknown field" into advice; other messages stay as they are.
fn explain(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else {
        // bytesize's own words say nothing about what would be right.
        return message.replace('\n', "; ").replace("expected parsable string", "expected a size such as \"64MiB\"");
    };
    let mut quoted = rest.split('`').step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    match nearest(unknown, &known) {
        Some(key) => format!("unknown key `{unknown}`; did you mean `{key}`?"),
        None if known.is_empty() => format!("unknown key `{unknown}`; no keys are known here"),
        None => format!("unknown key `{unknown}`; the keys are {}", known.join(", ")),
    }
}

/// The known word that `word` was most likely meant to be.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        // Below 0.8 the suggestion is more often wrong than right.
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsPatch;

    #[test]
    fn an_unknown_key_names_its_place_and_the_nearest() {
        let error = parse::<LimitsPatch>("spin.toml", "fuel = 1\ntimeuot = \"1s\"").unwrap_err();
        assert_eq!(error, "spin.toml:2:1: unknown key `timeuot`; did you mean `timeout`?");
    }

    #[test]
    fn a_key_like_no_other_lists_them() {
        let error = parse::<LimitsPatch>("spin.toml", "zzz = 1").unwrap_err();
        assert!(error.starts_with("spin.toml:1:1: unknown key `zzz`; the keys are fuel, timeout, memory"), "{error}");
    }

    #[test]
    fn a_wrong_value_names_its_place() {
        let error = parse::<LimitsPatch>("spin.toml", "\n\nfuel = \"much\"").unwrap_err();
        assert_eq!(error, "spin.toml:3:8: invalid type: string \"much\", expected u64");
    }
}
