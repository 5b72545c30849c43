//! Detects whether a confined server can still write files that control permissions.
//!
//! Code that escaped from the sandbox could write to these paths. If they included a grant, the
//! configuration or a program that prints a secret, that code could decide what is allowed and what
//! runs outside of the confinement.

use std::path::{Path, PathBuf};

use toolbay_secrets::SecretSpec;

use crate::folder::resolved_path::ResolvedPath;

/// The paths that a confined server may write to, or remove files from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritablePaths {
    /// A description of each path, such as `the audit log`, the path, and its resolved location.
    locations: Vec<(String, PathBuf, ResolvedPath)>,
    /// If set, a plugin is refused if the server may write files that control it. Otherwise, there
    /// is a warning.
    pub is_required: bool,
}

impl WritablePaths {
    /// Creates the list from descriptions and paths, which need not exist. Blocks.
    pub fn new(paths: impl IntoIterator<Item = (String, PathBuf)>, is_required: bool) -> Self {
        let locations = paths.into_iter().map(|(label, path)| {
            let location = ResolvedPath::resolve(&path);
            (label, path, location)
        });
        Self {
            locations: locations.collect(),
            is_required,
        }
    }

    /// Explains why the server could change the file at `path`, in a clause that contains its
    /// description `label`; `None` if it could not. Blocks.
    pub fn explain_write(&self, label: &str, path: &Path) -> Option<String> {
        self.explain_location_write(label, &ResolvedPath::resolve(path))
    }

    /// Explains why the server could change the folder, or files inside it, in a clause that
    /// contains its description `label`; `None` if it could not. Blocks.
    pub fn explain_folder_write(&self, label: &str, folder: &Path) -> Option<String> {
        let location = ResolvedPath::resolve(folder);
        let explain_contained = || {
            // The final location counts, not the folders that the path passes through.
            let mut locations = self.locations.iter();
            let (writable_label, path, _) = locations
                .find(|(_, _, writable)| writable.target().0.starts_with(location.target().0))?;
            Some(format!(
                "the server may write to {} ({writable_label}), which is in {label}",
                path.display()
            ))
        };
        self.explain_location_write(label, &location)
            .or_else(explain_contained)
    }

    /// Returns the paths that the server may write.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.locations.iter().map(|(_, path, _)| path.as_path())
    }

    /// Explains, for each of these secrets, why the server could change the program that prints it.
    /// Blocks.
    pub fn explain_program_writes(&self, folder: &Path, secrets: &[SecretSpec]) -> Vec<String> {
        let explain = |secret: &SecretSpec| {
            let mut files = program_files(secret, folder).into_iter();
            files.find_map(|(label, path)| self.explain_write(&label, &path))
        };
        secrets.iter().filter_map(explain).collect()
    }

    pub(crate) fn explain_location_write(
        &self,
        label: &str,
        location: &ResolvedPath,
    ) -> Option<String> {
        let (writable_label, path, _) = self
            .locations
            .iter()
            .find(|(_, _, writable)| writable.contains(location))?;
        Some(format!(
            "the server may write to {} ({writable_label}), which contains {label}",
            path.display()
        ))
    }
}

/// Returns the files that determine the behavior of the program that prints a secret, with
/// descriptions. Blocks.
pub(crate) fn program_files(secret: &SecretSpec, folder: &Path) -> Vec<(String, PathBuf)> {
    let label = format!("the program of secrets.{}", secret.name);
    secret
        .source
        .program_files(folder)
        .into_iter()
        .map(|path| (label.clone(), path))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn writable_paths_are_found_above_a_path_and_within_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["log/deep", "plugins/x.resources", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("log/deep"), at("other/link")).unwrap();
        let writable = WritablePaths::new([("the audit log".to_owned(), at("log"))], false);
        let said = writable
            .explain_write("the configuration", &at("log/toolbay.toml"))
            .unwrap();
        let log = at("log").display().to_string();
        assert_eq!(
            said,
            format!(
                "the server may write to {log} (the audit log), which contains the configuration"
            )
        );
        assert!(
            writable
                .explain_write("it", &at("other/link/file"))
                .is_some()
        );
        assert!(writable.explain_write("it", &at("other")).is_none());
        assert!(
            writable
                .explain_folder_write("it", &at("plugins"))
                .is_none()
        );
        let beside = WritablePaths::new([("a mount".to_owned(), at("plugins/../other"))], false);
        assert!(
            beside
                .explain_folder_write("the plugin folder", &at("plugins"))
                .is_none()
        );
        let within =
            WritablePaths::new([("the state".to_owned(), at("plugins/x.resources"))], false);
        assert!(
            within
                .explain_write("the plugin folder", &at("plugins"))
                .is_none()
        );
        assert!(
            within
                .explain_folder_write("the plugin folder", &at("plugins"))
                .unwrap()
                .ends_with("is in the plugin folder")
        );
    }
}
