//! What a server that has confined itself may still write, compared with what decides about it.
//!
//! Code that had escaped from the sandbox could write there. If a grant, the configuration or a program that prints a secret
//! were among that, it would decide what is allowed and what runs outside of the wall.

use std::path::{Path, PathBuf};

use toolbay_secrets::SecretSpec;

use crate::place::ResolvedPath;

/// What a confined server may write, or remove files of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritablePaths {
    /// What each is, such as `the audit log`, its path and where that is.
    places: Vec<(String, PathBuf, ResolvedPath)>,
    /// Whether a plugin is refused if the server may write what decides about it. Otherwise, there is a warning.
    pub required: bool,
}

impl WritablePaths {
    /// The places that a server may write: what each is, and its path, which need not exist. Blocks.
    pub fn new(places: impl IntoIterator<Item = (String, PathBuf)>, required: bool) -> Self {
        let places = places.into_iter().map(|(what, path)| {
            let place = ResolvedPath::of(&path);
            (what, path, place)
        });
        Self { places: places.collect(), required }
    }

    /// Why the server could change what is at `path`, as a clause with `what` it is; `None` if it could not. Blocks.
    pub fn changes(&self, what: &str, path: &Path) -> Option<String> {
        self.reaches(what, &ResolvedPath::of(path))
    }

    /// The same for a folder that is not only written to from around it, but also from within. Blocks.
    pub fn enters(&self, what: &str, folder: &Path) -> Option<String> {
        let place = ResolvedPath::of(folder);
        let within = || {
            // Where it is in the end, and not what the way to it passes.
            let mut places = self.places.iter();
            let (writes, path, _) = places.find(|(_, _, written)| written.end().0.starts_with(place.end().0))?;
            Some(format!("the server may write to {} ({writes}), which is in {what}", path.display()))
        };
        self.reaches(what, &place).or_else(within)
    }

    /// The paths that it may write.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|(_, path, _)| path.as_path())
    }

    /// Why the server could change a program that prints one of these secrets, for each of them. Blocks.
    pub fn programs(&self, folder: &Path, secrets: &[SecretSpec]) -> Vec<String> {
        let changed = |secret: &SecretSpec| {
            let mut files = program_files(secret, folder).into_iter();
            files.find_map(|(what, path)| self.changes(&what, &path))
        };
        secrets.iter().filter_map(changed).collect()
    }

    pub(crate) fn reaches(&self, what: &str, place: &ResolvedPath) -> Option<String> {
        let (writes, path, _) = self.places.iter().find(|(_, _, written)| written.contains(place))?;
        Some(format!("the server may write to {} ({writes}), which contains {what}", path.display()))
    }
}

/// The files that decide what the program does that prints the value of a secret: what each is, and where. Blocks.
pub(crate) fn program_files(secret: &SecretSpec, folder: &Path) -> Vec<(String, PathBuf)> {
    let what = format!("the program of secrets.{}", secret.name);
    secret.source.program_files(folder).into_iter().map(|path| (what.clone(), path)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_the_server_may_write_is_found_around_a_path_and_within_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["log/deep", "plugins/x.resources", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("log/deep"), at("other/link")).unwrap();
        let writable = WritablePaths::new([("the audit log".to_owned(), at("log"))], false);
        let said = writable.changes("the configuration", &at("log/toolbay.toml")).unwrap();
        let log = at("log").display().to_string();
        assert_eq!(said, format!("the server may write to {log} (the audit log), which contains the configuration"));
        assert!(writable.changes("it", &at("other/link/file")).is_some());
        assert!(writable.changes("it", &at("other")).is_none());
        assert!(writable.enters("it", &at("plugins")).is_none());
        let beside = WritablePaths::new([("a mount".to_owned(), at("plugins/../other"))], false);
        assert!(beside.enters("the plugin folder", &at("plugins")).is_none());
        let within = WritablePaths::new([("the state".to_owned(), at("plugins/x.resources"))], false);
        assert!(within.changes("the plugin folder", &at("plugins")).is_none());
        assert!(within.enters("the plugin folder", &at("plugins")).unwrap().ends_with("is in the plugin folder"));
    }
}
