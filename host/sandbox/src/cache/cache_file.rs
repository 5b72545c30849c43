//! Files of the cache: their names, ages, and which of them belong together.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use toolbay_private::TEMPORARY_PREFIX;

/// Age from which a temporary or incomplete file is considered abandoned by a killed server.
pub(super) const ABANDONED_AGE: Duration = Duration::from_hours(1);

/// Number of hexadecimal digits of a component's digest.
pub(super) const DIGEST_DIGITS: usize = 64;

/// Number of hexadecimal digits of the build identifier, and of the part of the authentication code
/// in a file's name.
pub(super) const HASH_DIGITS: usize = 16;

/// The file extension of notes about a plugin folder.
pub(super) const FOLDER_NOTES_EXTENSION: &str = "files";

/// Time without use after which notes about a plugin folder are removed.
const FOLDER_NOTES_RETENTION: Duration = Duration::from_hours(30 * 24);

/// The file extension of refusals.
pub(super) const REFUSAL_EXTENSION: &str = "refused";

/// Time after which a refused component is tried again, because a guest can return something else
/// at another time.
pub(super) const REFUSAL_RETENTION: Duration = Duration::from_hours(7 * 24);

/// A file of the cache.
pub(super) struct CacheFile {
    pub(super) name: String,
    pub(super) length: u64,
    /// The time of last use.
    pub(super) last_used: SystemTime,
}

impl CacheFile {
    pub(super) fn is_expired_folder_notes(&self) -> bool {
        self.has_extension(FOLDER_NOTES_EXTENSION)
            && self
                .last_used
                .elapsed()
                .is_ok_and(|age| age > FOLDER_NOTES_RETENTION)
    }

    pub(super) fn is_refusal(&self) -> bool {
        self.has_extension(REFUSAL_EXTENSION)
    }

    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.name)
            .extension()
            .is_some_and(|found| found == extension)
    }

    pub(super) fn is_expired_refusal(&self) -> bool {
        self.is_refusal()
            && self
                .last_used
                .elapsed()
                .is_ok_and(|age| age > REFUSAL_RETENTION)
    }

    /// Returns whether it is so old that no server can still be writing it or a file that belongs
    /// to it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.last_used
            .elapsed()
            .is_ok_and(|age| age > ABANDONED_AGE)
    }
}

/// Returns the files of the cache in this directory.
pub(super) fn list_files(folder: &Path) -> Vec<CacheFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_cache_file))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some(CacheFile {
                name: entry.file_name().into_string().ok()?,
                length: metadata.len(),
                last_used: metadata.modified().ok()?,
            })
        })
        .collect()
}

/// Returns the names of code files without a record, and of records without a code file. New files
/// are excluded: another server might be about to write the rest.
pub(super) fn find_orphans(files: &[CacheFile]) -> BTreeSet<String> {
    // The common prefix of both names, `<digest>-<build id>`.
    let stem = |name: &str| {
        name.get(..DIGEST_DIGITS + 1 + HASH_DIGITS)
            .unwrap_or_default()
            .to_owned()
    };
    let stems = |extension: &str| -> BTreeSet<String> {
        files
            .iter()
            .filter(|file| file.name.ends_with(extension))
            .map(|file| stem(&file.name))
            .collect()
    };
    let records = stems(".json");
    let codes = stems(".cwasm");
    let is_orphan = |name: &str| match Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("json") => !codes.contains(&stem(name)),
        Some("cwasm") => !records.contains(&stem(name)),
        _ => false,
    };
    let orphans = files
        .iter()
        .filter(|file| file.is_abandoned() && is_orphan(&file.name));
    orphans.map(|file| file.name.clone()).collect()
}

/// Returns whether a file with this name belongs to the cache. Other files in the directory are not
/// touched.
fn is_cache_file(name: &str) -> bool {
    let has_digest = name
        .get(..DIGEST_DIGITS)
        .is_some_and(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.starts_with(TEMPORARY_PREFIX)
        || (has_digest && name.get(DIGEST_DIGITS..=DIGEST_DIGITS) == Some("-"))
}
