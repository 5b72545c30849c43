//! `[state]`: state that plugins store between calls.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use toolbay_catalog::ApprovalFile;
use toolbay_model::setting::positive;
use toolbay_state::StateDatabase;

/// Name of the state directory, inside the one that the operator sets.
const STATE_FOLDER: &str = "toolbay-state";

/// Name of the directory of approved versions, inside the state directory.
const APPROVAL_FOLDER: &str = "approved-versions";

/// Number of hexadecimal digits that identify a plugin directory.
const FOLDER_ID_DIGITS: usize = 16;

/// State that plugins store between calls (`[state]`). Grants decide which plugins may store state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateConfig {
    /// The directory, in which Toolbay creates `toolbay-state`. A relative path is relative to the
    /// configuration file. An empty path turns state off. `None` uses a separate directory for each
    /// plugin directory, in `toolbay/state` in the user's state directory.
    pub folder: Option<PathBuf>,
    /// Approximate maximum size of the state of all plugins in bytes, above 0. Default: 1 GiB.
    #[serde(deserialize_with = "positive")]
    pub size: ByteSize,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self {
            folder: None,
            size: ByteSize::gib(1),
        }
    }
}

impl StateConfig {
    /// Resolves a relative path against `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(path) = self
            .folder
            .as_mut()
            .filter(|path| !path.as_os_str().is_empty())
        {
            *path = folder.join(&path);
        }
    }

    /// Returns the state directory of the plugins in `plugins`. `None` if state is off, or there is
    /// no home directory.
    pub(super) fn folder(&self, plugins: &Path) -> Option<PathBuf> {
        match &self.folder {
            Some(folder) if folder.as_os_str().is_empty() => None,
            // A subdirectory, so that the operator's other files are not touched.
            Some(folder) => Some(folder.join(STATE_FOLDER)),
            None => {
                let state = std::env::var_os("XDG_STATE_HOME")
                    .filter(|state| !state.is_empty())
                    .map(PathBuf::from);
                let state =
                    state.or_else(|| Some(std::env::home_dir()?.join(".local").join("state")))?;
                Some(state.join("toolbay").join("state").join(folder_id(plugins)))
            }
        }
    }

    /// Returns the file with the versions of the plugins in `plugins` that operators approved in the
    /// console, like [`StateConfig::folder`]. Plugin directories that share a state directory have
    /// separate files.
    pub(super) fn approval_file(&self, plugins: &Path) -> Option<ApprovalFile> {
        let folder = self.folder(plugins)?.join(APPROVAL_FOLDER);
        Some(ApprovalFile::new(
            folder,
            format!("{}.json", folder_id(plugins)),
        ))
    }

    /// Returns the database of the plugins in `plugins`, like [`StateConfig::folder`].
    pub(super) fn database(&self, plugins: &Path) -> Option<StateDatabase> {
        Some(StateDatabase::new(self.folder(plugins)?, self.size))
    }
}

/// Returns the name that identifies a plugin directory. Plugins in two directories may have the
/// same id, but are different plugins.
fn folder_id(plugins: &Path) -> String {
    let real = std::fs::canonicalize(plugins).unwrap_or_else(|_| plugins.to_owned());
    let mut name = hex::encode(Sha256::digest(real.as_os_str().as_encoded_bytes()));
    name.truncate(FOLDER_ID_DIGITS);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plugin_folder_has_a_separate_state_however_its_path_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let a = dir.path().join("a");
        let b = dir.path().join("b");
        std::fs::create_dir(&a).unwrap();
        std::fs::create_dir(&b).unwrap();
        let state = StateConfig::default();
        let folder = |path: &Path| state.folder(path).unwrap();
        assert_ne!(folder(&a), folder(&b));
        assert_eq!(folder(&a), folder(&b.join("../a")));
    }

    #[test]
    fn state_is_in_a_subfolder_of_a_set_folder_and_off_for_an_empty_path() {
        let mut state = StateConfig {
            folder: Some("here".into()),
            ..StateConfig::default()
        };
        state.resolve(Path::new("/etc/toolbay"));
        assert_eq!(
            state.folder(Path::new("plugins")),
            Some("/etc/toolbay/here/toolbay-state".into())
        );
        let mut disabled = StateConfig {
            folder: Some(PathBuf::new()),
            ..StateConfig::default()
        };
        disabled.resolve(Path::new("/etc/toolbay"));
        assert_eq!(disabled.folder(Path::new("plugins")), None);
        assert!(disabled.database(Path::new("plugins")).is_none());
    }
}
