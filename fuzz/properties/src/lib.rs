//! Properties of untrusted input: one for each fuzz target, asserted while the host processes the
//! input.
//!
//! The input is bytes, and a property that does not hold is a panic. The properties use the host
//! only through the public API of its crates, and none of these crates depends on this one. The
//! targets in `fuzz/` run the properties under a sanitizer. The tests below run them with the
//! corpus, which contains every finding.

mod component;
mod grant;
mod peer;
mod plain_line;
mod request;
mod schema;
mod stub;

pub use self::component::Components;
pub use self::grant::Grants;
pub use self::request::Requests;
pub use self::schema::schema;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Returns every input in the corpus of a target, with its name.
    fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../corpus")
            .join(target);
        let mut inputs: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (
                    entry.file_name().into_string().unwrap(),
                    fs::read(entry.path()).unwrap(),
                )
            })
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
        let grants = Grants::new().unwrap();
        for (name, input) in corpus("grant") {
            println!("{name}");
            grants.check(&input);
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
