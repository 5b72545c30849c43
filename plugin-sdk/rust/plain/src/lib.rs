//! The functions of the world in `wit/{{name}}.wit`. Each is a tool.

use exports::local::{{ident}}::texts::{Counts, Guest};

wit_bindgen::generate!({ path: "wit", world: "plugin" });

struct Plugin;

impl Guest for Plugin {
    fn greet(name: String, excited: Option<bool>) -> Result<String, String> {
        if name.trim().is_empty() {
            return Err("name is empty: say who to greet".to_owned());
        }
        let excited = excited.unwrap_or_default();
        Ok(if excited { format!("HELLO, {}!", name.to_uppercase()) } else { format!("Hello, {name}.") })
    }

    fn count(text: String) -> Counts {
        Counts {
            characters: size(text.chars().count()),
            words: size(text.split_whitespace().count()),
            lines: if text.is_empty() { 0 } else { size(text.split('\n').count()) },
        }
    }
}

/// Counts fit into 32 bits, because a text is smaller than 4 GiB.
fn size(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

export!(Plugin);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greets() {
        assert_eq!(Plugin::greet("Ada".to_owned(), None).unwrap(), "Hello, Ada.");
        assert_eq!(Plugin::greet("Ada".to_owned(), Some(true)).unwrap(), "HELLO, ADA!");
        assert!(Plugin::greet(" ".to_owned(), None).is_err());
    }

    #[test]
    fn counts() {
        let counts = Plugin::count("one two\nthrée".to_owned());
        assert_eq!((counts.characters, counts.words, counts.lines), (13, 3, 2));
        assert_eq!(Plugin::count(String::new()).lines, 0);
    }
}
