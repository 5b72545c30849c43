//! The setup of a project: it runs again if what it depends on has changed since it last succeeded.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use toolbay_settings::project::ProjectFile;

/// Folder in the project for the record of the setup.
const RECORD_FOLDER: &str = ".toolbay";

/// The record of the last setup that succeeded.
const RECORD_NAME: &str = "setup";

/// Files of package managers that people write. A change means that the setup must run again.
const MANIFESTS: [&str; 9] = [
    "Cargo.toml",
    "build.zig.zon",
    "constraints.txt",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "requirements.in",
    "requirements.txt",
    "rust-toolchain.toml",
];

/// Files of package managers that the setup and the build also write.
const LOCK_FILES: [&str; 10] = [
    "Cargo.lock",
    "bun.lock",
    "go.sum",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Folders that a setup installs into.
const INSTALLATION_FOLDERS: [&str; 2] = [".venv", "node_modules"];

/// The setup of a project, with the digest of its inputs when they were read.
pub(super) struct ProjectSetup<'a> {
    folder: &'a Path,
    /// True if the project has no setup commands.
    is_empty: bool,
    /// Digest of the commands, and of the files that people write.
    manifests: String,
}

/// Returns the paths of the files that list dependencies, also of those that do not exist.
pub(super) fn dependency_paths(folder: &Path) -> Vec<PathBuf> {
    let mut names = manifest_names(folder);
    names.extend(LOCK_FILES.map(str::to_owned));
    names.into_iter().map(|name| folder.join(name)).collect()
}

impl<'a> ProjectSetup<'a> {
    /// Reads the inputs of the setup. Record a success with the same value: a file that changes
    /// while the setup runs may not be part of it.
    pub(super) fn read(folder: &'a Path, project: &ProjectFile) -> Self {
        let mut digest = Sha256::new();
        for command in &project.setup {
            update_with(&mut digest, command.as_bytes());
        }
        add_files(&mut digest, folder, &manifest_names(folder));
        Self {
            folder,
            is_empty: project.setup.is_empty(),
            manifests: hex::encode(digest.finalize()),
        }
    }

    /// Returns whether the setup succeeded with these inputs, and what it installed is still
    /// there.
    pub(super) fn is_current(&self) -> bool {
        if self.is_empty {
            return true;
        }
        let Ok(record) = fs::read_to_string(self.folder.join(RECORD_FOLDER).join(RECORD_NAME))
        else {
            return false;
        };
        record == self.record()
    }

    /// Records that the setup succeeded with the inputs that were read.
    ///
    /// # Errors
    ///
    /// The record cannot be written.
    pub(super) fn record_success(&self) -> anyhow::Result<()> {
        if self.is_empty {
            return Ok(());
        }
        let folder = self.folder.join(RECORD_FOLDER);
        let failed = || format!("failed to write into {}", folder.display());
        fs::create_dir_all(&folder).with_context(failed)?;
        // The folder is not part of the project.
        fs::write(folder.join(".gitignore"), "*\n").with_context(failed)?;
        fs::write(folder.join(RECORD_NAME), self.record()).with_context(failed)
    }

    /// Returns the record of a success: the inputs, and the folders that exist now.
    fn record(&self) -> String {
        let mut locks = Sha256::new();
        add_files(&mut locks, self.folder, &LOCK_FILES.map(str::to_owned));
        let installed: Vec<&str> = INSTALLATION_FOLDERS
            .into_iter()
            .filter(|name| self.folder.join(name).is_dir())
            .collect();
        format!(
            "inputs {}\nlocks {}\ninstalled {}\n",
            self.manifests,
            hex::encode(locks.finalize()),
            installed.join(" ")
        )
    }
}

/// Returns the names of the files that people write: the known ones, and further requirements of
/// pip.
fn manifest_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = MANIFESTS.map(str::to_owned).to_vec();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    names.extend(
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| {
                name.starts_with("requirements")
                    && Path::new(name).extension().is_some_and(|end| end == "txt")
            }),
    );
    names.sort();
    names.dedup();
    names
}

/// Adds the names and contents of the files that exist.
fn add_files(digest: &mut Sha256, folder: &Path, names: &[String]) {
    for name in names {
        if let Ok(content) = fs::read(folder.join(name)) {
            update_with(digest, name.as_bytes());
            update_with(digest, &content);
        }
    }
}

/// Adds a value and its length, so that no two lists of values have the same input.
fn update_with(digest: &mut Sha256, value: &[u8]) {
    digest.update((value.len() as u64).to_le_bytes());
    digest.update(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(setup: &str) -> ProjectFile {
        let text = format!(
            "name = \"a\"\nlanguage = \"none\"\nsetup = {setup}\nbuild = []\noutput = \"a.wasm\"\nwatch = []"
        );
        ProjectFile::parse(&text).unwrap()
    }

    #[test]
    fn a_setup_is_current_until_one_of_its_inputs_changes() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
        let mut current = project("[\"true\"]");
        let is_current = |project: &ProjectFile| ProjectSetup::read(at, project).is_current();
        assert!(!is_current(&current));
        fs::create_dir(at.join(".venv")).unwrap();
        ProjectSetup::read(at, &current).record_success().unwrap();
        assert!(is_current(&current));
        write("notes.txt", "not an input");
        assert!(is_current(&current));
        for (name, text) in [
            ("requirements.txt", "pyyaml"),
            ("requirements.txt", "pyyaml\n"),
            ("requirements-dev.txt", "pytest"),
            ("package-lock.json", "{}"),
            ("go.mod", "module a"),
            ("Cargo.toml", ""),
        ] {
            write(name, text);
            assert!(!is_current(&current), "{name}");
            ProjectSetup::read(at, &current).record_success().unwrap();
            assert!(is_current(&current), "{name}");
        }
        // Content that moves to another file is a change.
        fs::remove_file(at.join("go.mod")).unwrap();
        assert!(!is_current(&current));
        ProjectSetup::read(at, &current).record_success().unwrap();
        fs::remove_dir(at.join(".venv")).unwrap();
        assert!(!is_current(&current));
        fs::create_dir(at.join(".venv")).unwrap();
        assert!(is_current(&current));
        current = project("[\"true\", \"true\"]");
        assert!(!is_current(&current));
        assert!(is_current(&project("[]")));
    }

    #[test]
    fn a_file_that_changes_during_the_setup_makes_it_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let project = project("[\"true\"]");
        let setup = ProjectSetup::read(at, &project);
        fs::write(at.join("requirements.txt"), "pyyaml").unwrap();
        fs::write(at.join("package-lock.json"), "written by the setup").unwrap();
        setup.record_success().unwrap();
        assert!(!ProjectSetup::read(at, &project).is_current());
        fs::remove_file(at.join("requirements.txt")).unwrap();
        assert!(ProjectSetup::read(at, &project).is_current());
    }
}
