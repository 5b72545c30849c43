//! The reason why an archive cannot be used.

use toolbay_model::text::clean_line;

/// The file with the metadata of the archive.
pub(crate) const MANIFEST_FILE: &str = "plugin.toml";

/// Maximum length of a path in a message, in bytes.
pub(crate) const MAX_SHOWN_PATH_BYTES: usize = 200;

/// The reason why an archive cannot be used. The text is one line, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(pub(crate) String);

/// Returns the error for a file of an archive.
pub(crate) fn refused(path: &str, why: &str) -> ArchiveError {
    ArchiveError(format!(
        "{:?} is refused: {why}",
        clean_line(path, MAX_SHOWN_PATH_BYTES)
    ))
}
