//! Notes about tool names that some clients or models refuse. One such name may make them refuse
//! the whole list.

/// Maximum length of a name that every API for models accepts, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Prefix that a widespread client adds to the names of tools. It counts towards the length.
const CLIENT_PREFIX: &str = "mcp__toolbay__";

/// Maximum number of names that a note quotes.
const MAX_SHOWN_NAMES: usize = 3;

/// Returns notes about the names of tools, as clients receive them.
pub fn name_notes(names: &[String]) -> Vec<String> {
    let is_common = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let note = |is_odd: &dyn Fn(&str) -> bool, why: &str| {
        let odd: Vec<&String> = names.iter().filter(|name| is_odd(name)).collect();
        let quoted: Vec<String> = odd
            .iter()
            .take(MAX_SHOWN_NAMES)
            .map(|name| format!("{name:?}"))
            .collect();
        let more = odd.len().saturating_sub(MAX_SHOWN_NAMES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        (!odd.is_empty()).then(|| {
            format!(
                "some clients reject tool names {why}: {}{more}",
                quoted.join(", ")
            )
        })
    };
    let long = MAX_NAME_CHARS - CLIENT_PREFIX.len();
    let notes = [
        note(
            &|name| !is_common(name),
            "with characters other than A-Z a-z 0-9 _ -",
        ),
        note(
            &|name| name.len() > MAX_NAME_CHARS,
            &format!("with more than {MAX_NAME_CHARS} characters"),
        ),
        note(
            &|name| name.len() > long && name.len() <= MAX_NAME_CHARS,
            &format!(
                "with more than {MAX_NAME_CHARS} characters, including a prefix that the client adds, such as \"{CLIENT_PREFIX}\""
            ),
        ),
    ];
    notes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_clients_refuse_are_noted() {
        let long = [
            "x".repeat(50),
            "y".repeat(51),
            "z".repeat(64),
            "w".repeat(65),
        ];
        let names: Vec<String> = ["a_b-C9", "acme.x"]
            .map(str::to_owned)
            .into_iter()
            .chain(long)
            .collect();
        let notes = name_notes(&names);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].ends_with(": \"acme.x\""), "{notes:?}");
        assert!(
            notes[1].contains("more than 64 characters: \"www") && !notes[1].contains("zzz"),
            "{notes:?}"
        );
        assert!(
            notes[2].contains("\"yyy") && notes[2].contains("\"zzz") && !notes[2].contains("xxx"),
            "{notes:?}"
        );
        assert!(name_notes(&names[..1]).is_empty());
        let many: Vec<String> = (0..9).map(|n| format!("a.{n}")).collect();
        let notes = name_notes(&many);
        assert!(
            notes[0].ends_with("\"a.0\", \"a.1\", \"a.2\" and 6 more"),
            "{notes:?}"
        );
    }
}
