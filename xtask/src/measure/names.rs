//! Names of types.

use std::collections::BTreeMap;

use super::figure::Measure;
use super::source::SourceFile;

/// Participles that do not end in `-ed` or `-ing`.
const IRREGULAR: &[&str] = &[
    "Begun",
    "Bound",
    "Built",
    "Chosen",
    "Done",
    "Drawn",
    "Found",
    "Given",
    "Gone",
    "Got",
    "Heard",
    "Held",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Overdrawn",
    "Overrun",
    "Paid",
    "Put",
    "Read",
    "Said",
    "Seen",
    "Sent",
    "Set",
    "Shown",
    "Spent",
    "Stolen",
    "Taken",
    "Told",
    "Undone",
    "Unread",
    "Unwritten",
    "Withdrawn",
    "Won",
    "Written",
];

/// Nouns that end as participles do.
const NOUNS: &[&str] = &[
    "Feed", "Listing", "Meaning", "Ring", "Seed", "Setting", "Speed", "String", "Thing",
];

/// Definitions that one name may have.
const MAX_DEFINITIONS: usize = 2;

/// Measures participles, single words and names that several types have.
pub(super) fn measure(files: &[SourceFile]) -> Vec<Measure> {
    let mut definitions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files {
        for (index, line) in file.lines.iter().enumerate() {
            if let Some(name) = defined_type(line) {
                definitions.entry(name).or_default().push(format!(
                    "{}:{}: {name}",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    let places = |wanted: &dyn Fn(&str, usize) -> bool| -> Vec<String> {
        let named = definitions
            .iter()
            .filter(|(name, places)| wanted(name, places.len()));
        named.flat_map(|(_, places)| places.clone()).collect()
    };
    let all = places(&|_, _| true).len();
    let participles = places(&|name, _| is_participle(name));
    let single = places(&|name, _| !has_two_words(name));
    let shared = places(&|_, count| count > MAX_DEFINITIONS);
    let names = definitions
        .values()
        .filter(|places| places.len() > MAX_DEFINITIONS)
        .count();
    vec![
        Measure::of_count(
            "types whose name is a participle",
            participles.len(),
            5,
            participles,
        ),
        Measure::of_share(
            "types whose name is one word, in percent",
            all,
            100,
            350,
            single,
        ),
        Measure::of_count("names of more than two types", names, 0, shared),
    ]
}

/// Returns the name of the type that the line defines. Associated types are indented, and do not
/// count.
fn defined_type(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let is_indented = code.len() < line.len();
    let code = code
        .strip_prefix("pub")
        .map_or(code, |rest| match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')').map_or(scope, |(_, rest)| rest),
            None => rest,
        });
    let (keyword, rest) = code.trim_start().split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !is_indented,
        _ => false,
    };
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    Some(name).filter(|name| is_definition && name.starts_with(char::is_uppercase))
}

fn is_participle(name: &str) -> bool {
    let is_regular = ["ed", "ing"].iter().any(|end| name.ends_with(end)) && !NOUNS.contains(&name);
    !has_two_words(name) && (is_regular || IRREGULAR.contains(&name))
}

/// Returns whether the name has an upper-case letter after its first letter: `CompileCache`, but
/// not `Cache`.
fn has_two_words(name: &str) -> bool {
    name.chars().skip(1).any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found() {
        for (line, name) in [
            ("pub(crate) struct Kept {", Some("Kept")),
            ("pub(in crate::http) enum Reply<'a> {", Some("Reply")),
            ("pub type Read = fn();", Some("Read")),
            ("    type Output = ();", None),
            ("    struct Local;", Some("Local")),
            ("// struct Comment", None),
            ("let structure = 1;", None),
        ] {
            assert_eq!(defined_type(line), name, "{line}");
        }
    }

    #[test]
    fn participles_are_single_words() {
        assert!(["Kept", "Asked", "Waiting"].into_iter().all(is_participle));
        assert!(
            !["KeptReply", "Setting", "Engine", "Feed"]
                .into_iter()
                .any(is_participle)
        );
    }
}
