//! A plugin folder of a test's own, with room beside it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

/// A temporary folder with `plugins/` in it; it is deleted with the last clone.
#[derive(Clone)]
pub(crate) struct Folder {
    root: Arc<TempDir>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("plugins")).unwrap();
        Self { root: Arc::new(root) }
    }

    /// A folder with one plugin.
    pub(crate) fn with(name: &str, component: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.put(name, component);
        folder
    }

    /// What is beside the plugins.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The plugin folder.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.beside("plugins")
    }

    /// A file in the plugin folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.plugins().join(name)
    }

    /// Puts a file into the plugin folder as installers do: written elsewhere, then renamed.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let staged = self.stage(name, content);
        fs::rename(staged, self.path(name)).unwrap();
    }

    /// Writes a file beside the plugins, on the same file system.
    pub(crate) fn stage(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let staged = self.beside(&format!("staged-{name}"));
        fs::write(&staged, content).unwrap();
        staged
    }

    /// Overwrites a file in place, as `cp` does.
    pub(crate) fn overwrite(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Makes `name` in the plugin folder a link to `target`, in one step even if there is one.
    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let staged = self.beside("staged-link");
        symlink(target, &staged).unwrap();
        fs::rename(staged, self.path(name)).unwrap();
    }

    /// Makes the folder `gate/`, which the hostile guest's `wait_for_gate` watches, and the grant that shows it.
    pub(crate) fn gate(&self) -> String {
        fs::create_dir_all(self.beside("gate")).unwrap();
        "[[permissions.mounts]]\nhost = \"../gate\"\nguest = \"/gate\"\naccess = \"read\"\n".to_owned()
    }

    /// Lets every `wait_for_gate` go.
    pub(crate) fn open_gate(&self) {
        fs::write(self.beside("gate/open"), "").unwrap();
    }
}
