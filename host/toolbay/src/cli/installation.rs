//! Puts the files of a plugin into the plugin folder, or removes them: all or none.
//!
//! Everything is written into a hidden folder in the plugin folder first, which a server ignores,
//! and then moved: the component last, so that a server never loads it without its other files. If
//! a step fails, the earlier ones are undone.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolbay_bundle::PluginArchive;

/// Extensions of what a plugin consists of, in the order in which it is moved. The grant is not
/// one of them.
pub(super) const EXTENSIONS: [&str; 6] = ["prompts", "resources", "skill", "docs", "wit", "wasm"];

/// The folder with the documents of a plugin, which a server ignores.
const DOCUMENTS_EXTENSION: &str = "docs";

/// The extension of the grant.
const GRANT_EXTENSION: &str = "toml";

/// One file or folder that is added, replaced or removed.
struct InstallationStep {
    name: String,
    exists: bool,
    is_new: bool,
}

/// The steps that add a plugin.
pub(super) struct Installation {
    steps: Vec<InstallationStep>,
}

impl Installation {
    /// Returns the steps for a folder.
    pub(super) fn plan(folder: &Path, archive: &PluginArchive) -> Self {
        let targets: Vec<PathBuf> = archive
            .files
            .keys()
            .map(|path| installed_path(&archive.id, path))
            .collect();
        let steps = EXTENSIONS.iter().map(|extension| {
            let name = format!("{}.{extension}", archive.id);
            InstallationStep {
                exists: folder.join(&name).symlink_metadata().is_ok(),
                is_new: targets.iter().any(|path| path.starts_with(&name)),
                name,
            }
        });
        Self {
            steps: steps.filter(|step| step.exists || step.is_new).collect(),
        }
    }

    /// Returns the steps that remove a plugin: the component first. The grant stays unless
    /// `with_grant`.
    pub(super) fn plan_removal(folder: &Path, id: &str, with_grant: bool) -> Self {
        let grant = with_grant.then_some(GRANT_EXTENSION);
        let names = EXTENSIONS
            .iter()
            .rev()
            .copied()
            .chain(grant)
            .map(|extension| format!("{id}.{extension}"));
        let existing = names.filter(|name| folder.join(name).symlink_metadata().is_ok());
        Self {
            steps: existing
                .map(|name| InstallationStep {
                    name,
                    exists: true,
                    is_new: false,
                })
                .collect(),
        }
    }

    /// Returns whether something of this name exists.
    pub(super) fn replaces_something(&self) -> bool {
        self.steps.iter().any(|step| step.exists)
    }

    /// Returns a line for each existing file or folder that is replaced or removed.
    pub(super) fn changes(&self) -> Vec<String> {
        let existing = self.steps.iter().filter(|step| step.exists);
        existing
            .map(|step| {
                let verb = if step.is_new { "replaces" } else { "removes" };
                format!("{verb} {}", step.name)
            })
            .collect()
    }

    /// Moves the files into the folder. If something else appears meanwhile, or a step fails,
    /// nothing changes.
    pub(super) fn install(&self, folder: &Path, archive: &PluginArchive) -> io::Result<()> {
        let staging = tempfile::Builder::new()
            .prefix(".toolbay-add-")
            .tempdir_in(folder)?;
        for (path, content) in &archive.files {
            let target = staging.path().join(installed_path(&archive.id, path));
            if let Some(parent) = target.parent() {
                create_folders(staging.path(), parent)?;
            }
            fs::write(&target, content)?;
            fs::set_permissions(&target, Permissions::from_mode(0o644))?;
        }
        self.apply(folder, staging.path())
    }

    /// Moves the files out of the folder and deletes them. If a step fails, nothing changes.
    pub(super) fn remove(&self, folder: &Path) -> io::Result<()> {
        let staging = tempfile::Builder::new()
            .prefix(".toolbay-remove-")
            .tempdir_in(folder)?;
        self.apply(folder, staging.path())
    }

    fn apply(&self, folder: &Path, staging: &Path) -> io::Result<()> {
        let mut done: Vec<&InstallationStep> = Vec::new();
        for step in &self.steps {
            if let Err(error) = step.apply(folder, staging) {
                for step in done.into_iter().rev() {
                    step.undo(folder, staging);
                }
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", step.name),
                ));
            }
            done.push(step);
        }
        Ok(())
    }
}

impl InstallationStep {
    fn apply(&self, folder: &Path, staging: &Path) -> io::Result<()> {
        let (staged, target) = (staging.join(&self.name), folder.join(&self.name));
        match (self.is_new, self.exists) {
            // The staging folder is deleted with what was replaced.
            (true, true) => rename(&staged, &target, RenameFlags::EXCHANGE),
            (true, false) => rename(&staged, &target, RenameFlags::NOREPLACE),
            (false, _) => rename(&target, &staged, RenameFlags::NOREPLACE),
        }
    }

    /// Undoes the step as far as possible.
    fn undo(&self, folder: &Path, staging: &Path) {
        let (staged, target) = (staging.join(&self.name), folder.join(&self.name));
        let undone = match (self.is_new, self.exists) {
            (true, true) => rename(&staged, &target, RenameFlags::EXCHANGE),
            (true, false) => rename(&target, &staged, RenameFlags::NOREPLACE),
            (false, _) => rename(&staged, &target, RenameFlags::NOREPLACE),
        };
        drop(undone);
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, flags)?)
}

/// Returns the path of a file of an archive in the plugin folder.
pub(super) fn installed_path(id: &str, path: &str) -> PathBuf {
    if path.starts_with(&format!("{id}.")) {
        PathBuf::from(path)
    } else {
        Path::new(&format!("{id}.{DOCUMENTS_EXTENSION}")).join(path)
    }
}

/// Creates `folder` in `root`, with modes that other users can read.
fn create_folders(root: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for made in folder.ancestors().take_while(|made| *made != root) {
        fs::set_permissions(made, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[&str]) -> PluginArchive {
        PluginArchive {
            id: "a".to_owned(),
            files: files
                .iter()
                .map(|path| ((*path).to_owned(), b"new".to_vec()))
                .collect(),
            ..PluginArchive::default()
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_plugin_is_replaced_with_everything_that_belongs_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a.wasm"), "old").unwrap();
        fs::write(root.join("a.toml"), "grant").unwrap();
        fs::create_dir(root.join("a.prompts")).unwrap();
        let archive = archive(&["a.wasm", "a.resources/x/y", "README.md"]);
        let installation = Installation::plan(root, &archive);
        assert_eq!(
            installation.changes(),
            ["removes a.prompts", "replaces a.wasm"]
        );
        assert!(installation.replaces_something());
        installation.install(root, &archive).unwrap();
        assert_eq!(names(root), ["a.docs", "a.resources", "a.toml", "a.wasm"]);
        assert_eq!(fs::read(root.join("a.wasm")).unwrap(), b"new");
        assert_eq!(fs::read(root.join("a.toml")).unwrap(), b"grant");
    }

    #[test]
    fn a_step_that_fails_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a.wit"), "old").unwrap();
        let archive = archive(&["a.wasm", "a.wit", "a.prompts/x"]);
        let installation = Installation::plan(root, &archive);
        // A component that appears after the plan is not overwritten.
        fs::write(root.join("a.wasm"), "other").unwrap();
        let error = installation.install(root, &archive).unwrap_err();
        assert!(error.to_string().starts_with("a.wasm: "), "{error}");
        assert_eq!(names(root), ["a.wasm", "a.wit"]);
        assert_eq!(fs::read(root.join("a.wasm")).unwrap(), b"other");
        assert_eq!(fs::read(root.join("a.wit")).unwrap(), b"old");
    }

    #[test]
    fn a_plugin_is_removed_and_its_grant_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["a.wasm", "a.toml", "a.wit", "ab.wasm", "b.wasm"] {
            fs::write(root.join(name), "x").unwrap();
        }
        fs::create_dir_all(root.join("a.docs/x")).unwrap();
        let removal = Installation::plan_removal(root, "a", false);
        assert_eq!(
            removal.changes(),
            ["removes a.wasm", "removes a.wit", "removes a.docs"]
        );
        removal.remove(root).unwrap();
        assert_eq!(names(root), ["a.toml", "ab.wasm", "b.wasm"]);
        Installation::plan_removal(root, "a", true)
            .remove(root)
            .unwrap();
        assert_eq!(names(root), ["ab.wasm", "b.wasm"]);
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let victim = root.join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, root.join("a.wasm")).unwrap();
        let archive = archive(&["a.wasm"]);
        Installation::plan(root, &archive)
            .install(root, &archive)
            .unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert!(root.join("a.wasm").symlink_metadata().unwrap().is_file());
    }
}
