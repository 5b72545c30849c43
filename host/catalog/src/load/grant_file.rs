//! Reads grant files.

use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;

use crate::component::blocking_work::run_blocking;
use crate::folder::file_reader::{read_optional, read_with_sighting};
use crate::folder::grant_age::GrantAge;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::grant_path;
use crate::rules::grant::Grant;

/// Maximum size of a grant file, in bytes. A larger file is a mistake, such as the wrong file.
const MAX_GRANT_BYTES: u64 = 1 << 20;

/// A plugin's grant as read from its file.
pub(crate) struct GrantFile {
    pub(crate) grant: Grant,
    /// Time at which the grant will have been unchanged for long enough to give rights; `None` if
    /// it already has.
    pub(crate) settles_at: Option<Instant>,
    /// True if the file exists.
    pub(crate) exists: bool,
}

impl GrantFile {
    /// Reads a plugin's grant, on a blocking thread.
    pub(crate) async fn read(
        folder: &Arc<Path>,
        id: &str,
        age: &Arc<GrantAge>,
    ) -> Result<Self, LoadError> {
        let folder = Arc::clone(folder);
        let id = id.to_owned();
        let age = Arc::clone(age);
        run_blocking("reading its grant", move || {
            Self::read_blocking(&folder, &id, &age)
        })
        .await
    }

    /// Reads a plugin's grant, and records in `age` how long it has been unchanged. Blocks.
    pub(crate) fn read_blocking(
        folder: &Path,
        id: &str,
        age: &GrantAge,
    ) -> Result<Self, LoadError> {
        let read = read_with_sighting(&grant_path(folder, id), MAX_GRANT_BYTES)?;
        let settles_at = age.settle_time(read.as_ref().map(|(_, seen)| seen));
        let exists = read.is_some();
        let grant = match read {
            Some((text, _)) => parse_grant(folder, id, &text)?,
            None => Grant::default(),
        };
        Ok(Self {
            grant,
            settles_at,
            exists,
        })
    }
}

/// Returns a plugin's grant, or the default grant if there is no file. Blocks.
pub(crate) fn load_grant(folder: &Path, id: &str) -> Result<Grant, LoadError> {
    match read_grant(folder, id)? {
        Some(text) => parse_grant(folder, id, &text),
        None => Ok(Grant::default()),
    }
}

/// Returns the text of a plugin's grant, if the file exists.
///
/// # Errors
///
/// The file cannot be read, or is too large.
pub fn read_grant(folder: &Path, id: &str) -> Result<Option<String>, LoadError> {
    read_optional(&grant_path(folder, id), MAX_GRANT_BYTES)
}

fn parse_grant(folder: &Path, id: &str, text: &str) -> Result<Grant, LoadError> {
    Grant::parse(&format!("{id}.toml"), text, folder).map_err(LoadError::Refused)
}
