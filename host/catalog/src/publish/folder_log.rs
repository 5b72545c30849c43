//! Logs changes of the plugin folder itself.

use std::io;
use std::path::Path;

use crate::folder::plugin_folder::{FolderListing, check_plugin_folder};

/// State of the plugin folder at the last scan, so that each change is logged once.
#[derive(Default)]
pub(crate) struct FolderLog {
    /// True if the folder was missing.
    missing: bool,
    /// The reason why the folder could not be read.
    unreadable: Option<String>,
}

impl FolderLog {
    /// Logs once that the folder disappeared, is back, or can be read again. A missing folder
    /// counts as empty.
    pub(crate) fn log_listing(
        &mut self,
        folder: &Path,
        found: Option<FolderListing>,
    ) -> FolderListing {
        let folder = folder.display();
        if self.unreadable.take().is_some() {
            tracing::info!("the plugin folder {folder} can be read again");
        }
        match (&found, self.missing) {
            (None, false) => {
                tracing::warn!(
                    "the plugin folder {folder} no longer exists; its plugins are removed until it returns"
                );
            }
            (Some(_), true) => tracing::info!("the plugin folder {folder} is back"),
            _ => {}
        }
        self.missing = found.is_none();
        found.unwrap_or_default()
    }

    /// Logs once that the folder cannot be read. Returns the reason.
    pub(crate) fn log_unreadable(&mut self, folder: &Path, error: &io::Error) -> String {
        let why = check_plugin_folder(folder)
            .err()
            .unwrap_or_else(|| error.to_string());
        if self.unreadable.as_ref() != Some(&why) {
            tracing::warn!("{why}; plugins that are loaded stay in service");
        }
        self.unreadable = Some(why.clone());
        why
    }
}
