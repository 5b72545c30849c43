//! The directory of the cache: its fill level, the names in it, and which files are removed.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use bytesize::ByteSize;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tempfile::NamedTempFile;
use toolbay_model::Digest;
use toolbay_private::{PrivateFolder, TEMPORARY_PREFIX};
use wasmtime::Engine;

use super::cache_file::{CacheFile, DIGEST_DIGITS, REFUSAL_EXTENSION, find_orphans, list_files};
use super::key::CacheMacKey;
use crate::component::contract_versions::SUPPORTED_VERSIONS;

/// Age from which the time of last use is updated. A server that opens a thousand components at
/// startup should not perform a thousand writes.
pub(super) const TOUCH_INTERVAL: Duration = Duration::from_hours(24);

/// The version of the code that derives descriptions and schemas from a component. Increase it with
/// every change to the derived data, so that a newer Toolbay does not show data that an older one
/// derived.
pub(super) const DERIVATION_VERSION: u32 = 9;

/// The version of the entry format. Entries in another format are ignored.
const ENTRY_VERSION: u32 = 4;

/// Minimum interval between listings of the directory, as a multiple of the duration of the last
/// listing. A listing finds the files of other servers. With thousands of entries, a listing for
/// each new entry would take longer than compiling.
const RELIST_FACTOR: u32 = 20;

/// Maximum number of refusals.
pub(super) const MAX_REFUSALS: usize = 1_000;

/// Returns the build identifier. It covers the engine's version, settings and target, the versions
/// of the contract, the entry format, and the version of the code that derives descriptions.
pub(super) fn build_id(engine: &Engine, derivation: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    ENTRY_VERSION.hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    SUPPORTED_VERSIONS
        .map(|(version, _)| version)
        .hash(&mut hasher);
    derivation.hash(&mut hasher);
    hasher.finish()
}

/// A directory of compiled components of one build. It can contain files of other builds.
#[derive(Debug)]
pub(crate) struct CompileCache {
    pub(super) folder: PrivateFolder,
    pub(super) key: CacheMacKey,
    /// The build identifier, see [`build_id`]. Files of other builds are ignored.
    pub(super) build_id: u64,
    pub(super) max_bytes: u64,
    /// The estimated fill level.
    pub(super) level: Mutex<CacheLevel>,
}

/// The estimated fill level of the cache, without a new listing.
#[derive(Debug)]
pub(super) struct CacheLevel {
    /// Bytes at the last listing, plus those that this server has added.
    bytes: u64,
    /// The time of the last listing and its duration, or `None` before the first.
    last_listing: Option<(Instant, Duration)>,
}

/// The file `<digest>-<build id>.refused`, or `<digest>-<build id>.files` with the digest of a
/// plugin folder's path.
#[derive(Deserialize, Serialize)]
pub(super) struct SignedNotes {
    /// The message authentication code over the path or the digest, and the notes, in hexadecimal.
    pub(super) mac: String,
    /// The notes, as the exact text that was signed.
    pub(super) notes: Box<RawValue>,
}

impl CompileCache {
    /// Opens the cache. Creates the directory if necessary. Nothing is removed before
    /// [`CompileCache::tidy`].
    ///
    /// # Errors
    ///
    /// The reason why the cache cannot be used, on one line.
    pub(crate) fn open(folder: &Path, engine: &Engine, size: ByteSize) -> Result<Self, String> {
        let disabled_message = |why: String| format!("the compile cache is off: {why}");
        let unusable_message = |error: io::Error| {
            disabled_message(format!("cannot use {}: {error}", folder.display()))
        };
        let private_folder =
            PrivateFolder::open(folder, "compiled components").map_err(disabled_message)?;
        // The cache must be writable. Detect a problem now instead of at the first plugin.
        tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(&private_folder.path)
            .map_err(unusable_message)?;
        let key = CacheMacKey::load_or_create(&private_folder).map_err(unusable_message)?;
        let level = Mutex::new(CacheLevel {
            bytes: 0,
            last_listing: None,
        });
        Ok(Self {
            folder: private_folder,
            key,
            build_id: build_id(engine, DERIVATION_VERSION),
            max_bytes: size.as_u64(),
            level,
        })
    }

    /// Removes files of killed servers, and entries beyond the size limit. The duration grows with
    /// the number of files, so this must not delay startup.
    pub(crate) fn tidy(&self) {
        self.sweep();
        self.evict();
    }

    /// Removes the entries of this build. Returns the numbers of removed components and bytes. Code
    /// that is in use stays mapped.
    ///
    /// # Errors
    ///
    /// A file could not be removed. The other files are removed nevertheless.
    pub(crate) fn clear(&self) -> io::Result<(usize, u64)> {
        let build_suffix = format!("-{:016x}", self.build_id);
        let is_of_build = |file: &CacheFile| {
            file.name
                .get(DIGEST_DIGITS..)
                .is_some_and(|rest| rest.starts_with(&build_suffix))
        };
        let is_record = |file: &CacheFile| {
            Path::new(&file.name)
                .extension()
                .is_some_and(|kind| kind == "json")
        };
        let mut components = 0;
        let mut bytes = 0;
        let mut last_error = None;
        let (records, code): (Vec<_>, Vec<_>) = list_files(&self.folder.path)
            .into_iter()
            .filter(is_of_build)
            .partition(is_record);
        // Remove the record first, as in eviction: code without a record only wastes space.
        for file in records.iter().chain(&code) {
            match fs::remove_file(self.folder.path.join(&file.name)) {
                Ok(()) => {
                    components += usize::from(is_record(file));
                    bytes += file.length;
                }
                // Another server removed it first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => last_error = Some(error),
            }
        }
        self.evict();
        last_error.map_or(Ok((components, bytes)), Err)
    }

    /// Creates a file for the compiler's output, which [`CompileCache::insert`] can add to the
    /// cache.
    pub(crate) fn create_temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(&self.folder.path)
    }

    /// Adds a new entry to the fill level. Returns whether the directory should be listed again.
    pub(super) fn record_growth(&self, length: u64) -> bool {
        let mut level = self.level.lock();
        level.bytes = level.bytes.saturating_add(length);
        level.bytes > self.max_bytes
            || level
                .last_listing
                .is_none_or(|(at, duration)| at.elapsed() >= duration * RELIST_FACTOR)
    }

    pub(super) fn refusal_name(&self, digest: Digest) -> String {
        format!("{}.{REFUSAL_EXTENSION}", self.file_stem(digest))
    }

    pub(super) fn refusal_path(&self, digest: Digest) -> PathBuf {
        self.folder.path.join(self.refusal_name(digest))
    }

    /// Returns the common prefix of the names of an entry's files.
    pub(super) fn file_stem(&self, digest: impl std::fmt::Display) -> String {
        format!("{digest}-{:016x}", self.build_id)
    }

    pub(super) fn record_name(&self, digest: impl std::fmt::Display) -> String {
        format!("{}.json", self.file_stem(digest))
    }

    pub(super) fn record_path(&self, digest: impl std::fmt::Display) -> PathBuf {
        self.folder.path.join(self.record_name(digest))
    }

    pub(super) fn mark_used(record: &Path) {
        let age = fs::metadata(record)
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > TOUCH_INTERVAL) {
            drop(
                File::options()
                    .append(true)
                    .open(record)
                    .and_then(|file| file.set_modified(SystemTime::now())),
            );
        }
    }

    /// Removes files of killed servers (temporary files, code without a record, and records without
    /// code), and expired notes and refusals.
    pub(super) fn sweep(&self) {
        let files = list_files(&self.folder.path);
        let orphans = find_orphans(&files);
        for file in &files {
            let is_unfinished = file.name.starts_with(TEMPORARY_PREFIX) && file.is_abandoned();
            let is_expired = file.is_expired_folder_notes() || file.is_expired_refusal();
            if is_unfinished || orphans.contains(&file.name) || is_expired {
                drop(fs::remove_file(self.folder.path.join(&file.name)));
            }
        }
    }

    /// Removes the oldest refusals beyond [`MAX_REFUSALS`]. Then removes orphans, and then the
    /// least recently used components and refusals, until the rest is within the size limit.
    /// Entries of other builds are no longer used and are therefore removed early.
    pub(super) fn evict(&self) {
        let start = Instant::now();
        let mut files = list_files(&self.folder.path);
        files.sort_by_key(|file| file.last_used);
        let mut surplus = files
            .iter()
            .filter(|file| file.is_refusal())
            .count()
            .saturating_sub(MAX_REFUSALS);
        files.retain(|file| {
            let is_surplus = surplus > 0 && file.is_refusal();
            surplus -= usize::from(is_surplus);
            !is_surplus || fs::remove_file(self.folder.path.join(&file.name)).is_err()
        });
        let mut total: u64 = files.iter().map(|file| file.length).sum();
        let record_listing = |bytes| {
            let level = CacheLevel {
                bytes,
                last_listing: Some((Instant::now(), start.elapsed())),
            };
            *self.level.lock() = level;
        };
        record_listing(total);
        if total <= self.max_bytes {
            return;
        }
        files.retain(|file| !file.name.starts_with(TEMPORARY_PREFIX));
        let orphans = find_orphans(&files);
        let (orphaned, complete): (Vec<_>, Vec<_>) =
            files.iter().partition(|file| orphans.contains(&file.name));
        // Remove the record first: code without a record only wastes space.
        let entries = complete
            .iter()
            .filter(|file| file.has_extension("json") || file.is_refusal());
        let entries = entries.filter_map(|file| Path::new(&file.name).file_stem()?.to_str());
        let entries = entries.flat_map(|key| {
            let of_entry = complete
                .iter()
                .filter(move |file| file.name.starts_with(key));
            let (record, code): (Vec<_>, Vec<_>) =
                of_entry.partition(|file| file.name.strip_suffix(".json") == Some(key));
            record.into_iter().chain(code)
        });
        for file in orphaned.iter().chain(entries) {
            if total <= self.max_bytes {
                break;
            }
            if fs::remove_file(self.folder.path.join(&file.name)).is_ok() {
                total = total.saturating_sub(file.length);
            }
        }
        record_listing(total);
    }
}
