//! What must hold of whatever strangers send: one property a fuzzing target, asserted while the input passes through.
//!
//! `fuzz/` feeds them under a sanitizer. The tests below feed them its corpus, in which every finding is kept.

mod component;

pub use self::component::Components;
pub use crate::mcp::fuzz::Requests;
pub use crate::plugin::fuzz::grant;
pub use crate::schema::fuzz::schema;

/// Whether a line of log or a model can be shown `text`: one line, and nothing in it that only acts.
pub(crate) fn is_plain_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\t']) && crate::text::clean(text) == text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Every input that was kept for a target, with its name.
    fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        let mut inputs: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        assert!(!inputs.is_empty());
        inputs.sort();
        inputs
    }

    #[test]
    fn requests() {
        let requests = Requests::new().unwrap();
        for (name, input) in corpus("request") {
            println!("{name}");
            requests.check(&input);
        }
    }

    #[test]
    fn grants() {
        for (name, input) in corpus("grant") {
            println!("{name}");
            grant(&input);
        }
    }

    #[test]
    fn schemas() {
        for (name, input) in corpus("schema") {
            println!("{name}");
            schema(&input);
        }
    }

    #[test]
    fn components() {
        let folder = tempfile::tempdir().unwrap();
        let components = Components::new(folder.path()).unwrap();
        for (name, input) in corpus("component") {
            println!("{name}");
            components.check(&input);
        }
    }
}
