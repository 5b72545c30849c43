//! The compile cache stores compiled components on disk by their content digest. A component's
//! notes are read at once, in microseconds. Its code is opened when the first call needs it.
//!
//! Compiled code is native code: anyone who can write to this directory can run code as the server.
//! The directory is therefore private. The owner and mode of it and of every parent directory are
//! checked by descriptor. Nothing from a plugin folder enters it without passing the compiler.
//!
//! Each entry has two message authentication codes. One is computed over the code. The other is
//! computed over the component's digest, the build identifier, the notes, and the first code. The
//! latter is checked when the entry is found, the former when its code is opened. Only this user
//! has the [`key`]. The checked bytes are the ones that run: the file is checked and mapped through
//! one descriptor, and only this user could change it in between.
//!
//! Files are written under a temporary name, synced, renamed, and never changed. Several servers
//! can share the directory. A server that is killed at any moment leaves it usable.
//!
//! The reason why a component could not be loaded is stored as well, with the conditions under
//! which it holds: a refused plugin costs a compilation once, and not at every start. These files
//! have a message authentication code, too. Their number and their age are bounded.

mod code;
mod key;
mod refusal;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use toolbay_model::{ComponentDescription, Digest};
use toolbay_private::{PrivateFolder, TEMPORARY_PREFIX};
use wasmtime::Engine;
use wasmtime::component::Component;

pub(crate) use self::code::{create_memory_file, open_file, open_from_memory};
use self::key::{CacheMacKey, EntryClaim};
use self::refusal::RefusalNotes;
pub use self::refusal::StoredRefusal;
use crate::component::contract_versions::SERVED_VERSIONS;
use crate::component::plugin_summary::PluginSummary;
use crate::prepare::component_summary::ComponentSummary;
use crate::store::error::describe_too_large;

/// Age from which a temporary or incomplete file is considered abandoned by a killed server.
const ABANDONED_AGE: Duration = Duration::from_hours(1);

/// Age from which the time of last use is updated. A server that opens a thousand components at
/// startup should not perform a thousand writes.
const TOUCH_INTERVAL: Duration = Duration::from_hours(24);

/// The version of the code that derives descriptions and schemas from a component. Increase it with
/// every change to the derived data, so that a newer Toolbay does not show data that an older one
/// derived.
const DERIVATION_VERSION: u32 = 9;

/// The version of the entry format. Entries in another format are ignored.
const ENTRY_VERSION: u32 = 4;

/// The directory is listed again, to find files of other servers, when this multiple of the
/// duration of the last listing has passed. With thousands of entries, a listing for each new entry
/// would take longer than compiling.
const RELIST_FACTOR: u32 = 20;

/// Number of hexadecimal digits of a component's digest.
const DIGEST_DIGITS: usize = 64;

/// Number of hexadecimal digits of the build identifier, and of the part of the authentication code
/// in a file's name.
const HASH_DIGITS: usize = 16;

/// Returns the build identifier. It covers the engine's version, settings and target, the versions
/// of the contract, the entry format, and the version of the code that derives descriptions.
fn build_id(engine: &Engine, derivation: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    ENTRY_VERSION.hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    SERVED_VERSIONS
        .map(|(version, _)| version)
        .hash(&mut hasher);
    derivation.hash(&mut hasher);
    hasher.finish()
}

/// A directory of compiled components of one build. It can contain files of other builds.
#[derive(Debug)]
pub(crate) struct CompileCache {
    folder: PrivateFolder,
    key: CacheMacKey,
    /// The build identifier, see [`build_id`]. Files of other builds are ignored.
    maker: u64,
    size: u64,
    /// The estimated fill level.
    level: Mutex<CacheLevel>,
}

/// The estimated fill level of the cache, without a new listing.
#[derive(Debug)]
struct CacheLevel {
    /// Bytes at the last listing, plus those that this server has added.
    bytes: u64,
    /// The time of the last listing and its duration, or `None` before the first.
    listed: Option<(Instant, Duration)>,
}

/// The file `<digest>-<engine>.json`. It is written last, so the files that it names are complete.
#[derive(Deserialize, Serialize)]
struct CacheRecord {
    /// The name of the file with the code.
    code: String,
    /// The message authentication code over the file with the code, in hexadecimal.
    code_mac: String,
    /// The message authentication code over the notes and `code_mac`, in hexadecimal.
    mac: String,
    /// [`ComponentNotes`], as the very text that was signed.
    notes: Box<RawValue>,
}

/// Stored information about a component.
#[derive(Deserialize, Serialize)]
pub(crate) struct ComponentNotes {
    /// The facts that are available without the code.
    pub(crate) facts: ComponentSummary,
    /// The settings of the engines in which the code was opened: see
    /// [`engine::pool_fingerprint`](crate::compile::engine::pool_fingerprint).
    pub(crate) room: u64,
    /// The items that the component offers.
    pub(crate) description: ComponentDescription,
    /// Information about the component's file.
    pub(crate) about: PluginSummary,
    /// The number of nested instances with functions, if the code was compiled for the engine of
    /// components with async functions.
    #[serde(default)]
    pub(crate) tasked: Option<u32>,
}

/// An entry that was found. Its code is not checked yet.
pub(crate) struct CachedComponent {
    pub(crate) notes: ComponentNotes,
    pub(crate) code: StoredCode,
}

/// The code of an entry, not checked yet.
#[derive(Clone, Debug)]
pub(crate) struct StoredCode {
    digest: Digest,
    /// The name of the file.
    name: String,
    /// Its message authentication code.
    mac: Vec<u8>,
}

/// The file `<digest of a plugin folder's path>-<maker>.files`, or `<digest>-<maker>.refused`.
#[derive(Deserialize, Serialize)]
struct SignedNotes {
    /// The message authentication code over the path or the digest, and the notes, in hexadecimal.
    mac: String,
    /// The notes, as the exact text that was signed.
    notes: Box<RawValue>,
}

/// The reason why a compiled component cannot be used.
pub(crate) enum UnusableEntry {
    /// It is damaged.
    Damaged(String),
    /// It is intact but exceeds this server's limits, which are lower than before. Compiling it
    /// again reports the exceeded limit.
    Unfit,
}

/// Error message for an entry whose authentication code is wrong.
const FORGED_MESSAGE: &str = "its code is corrupt, or was not compiled for this plugin by this user (wrong authentication code)";

impl CompileCache {
    /// Opens the cache. Creates the directory if necessary. Nothing is removed before
    /// [`CompileCache::tidy`].
    ///
    /// # Errors
    ///
    /// The reason why the cache cannot be used, on one line.
    pub(crate) fn open(folder: &Path, engine: &Engine, size: ByteSize) -> Result<Self, String> {
        let off = |why: String| format!("the compile cache is off: {why}");
        let cannot = |error: io::Error| off(format!("cannot use {}: {error}", folder.display()));
        let private = PrivateFolder::open(folder, "compiled components").map_err(off)?;
        // The cache must be writable. Detect a problem now instead of at the first plugin.
        tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(&private.path)
            .map_err(cannot)?;
        let key = CacheMacKey::load_or_create(&private).map_err(cannot)?;
        let level = Mutex::new(CacheLevel {
            bytes: 0,
            listed: None,
        });
        Ok(Self {
            folder: private,
            key,
            maker: build_id(engine, DERIVATION_VERSION),
            size: size.as_u64(),
            level,
        })
    }

    /// Removes files of killed servers, and entries over the size limit. The duration grows with
    /// the number of files, so this must not delay startup.
    pub(crate) fn tidy(&self) {
        self.sweep();
        self.evict();
    }

    /// Removes the entries of this build. Returns the number of components and bytes. Code that is
    /// in use stays mapped.
    ///
    /// # Errors
    ///
    /// A file could not be removed. The others were.
    pub(crate) fn clear(&self) -> io::Result<(usize, u64)> {
        let maker = format!("-{:016x}", self.maker);
        let of_maker = |file: &CacheFile| {
            file.name
                .get(DIGEST_DIGITS..)
                .is_some_and(|rest| rest.starts_with(&maker))
        };
        let is_record = |file: &CacheFile| {
            Path::new(&file.name)
                .extension()
                .is_some_and(|kind| kind == "json")
        };
        let (mut components, mut bytes, mut failed) = (0, 0, None);
        let (records, code): (Vec<_>, Vec<_>) = self
            .list_files()
            .into_iter()
            .filter(of_maker)
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
                Err(error) => failed = Some(error),
            }
        }
        self.evict();
        failed.map_or(Ok((components, bytes)), Err)
    }

    /// Returns the entry of the component with this digest. Removes and logs an entry that is
    /// damaged or not signed by this user.
    pub(crate) fn find(&self, digest: Digest) -> Option<CachedComponent> {
        let path = self.record_path(digest);
        let mut text = Vec::new();
        let read = self
            .folder
            .open_file(&self.record_name(digest))
            .and_then(|(mut file, _)| file.read_to_end(&mut text));
        let found = match read {
            Ok(_) => self.read_record(digest, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Err(format!("cannot read its record: {error}")),
        };
        match found {
            Ok(found) => {
                Self::mark_used(&path);
                Some(found)
            }
            Err(why) => {
                self.drop_entry(digest, &why);
                None
            }
        }
    }

    fn drop_entry(&self, digest: Digest, why: &str) {
        tracing::warn!(%digest, "compile cache: an entry was dropped and is compiled again: {why}");
        drop(fs::remove_file(self.record_path(digest)));
    }

    fn read_record(&self, digest: Digest, text: &[u8]) -> Result<CachedComponent, String> {
        let corrupt = || "its record is corrupt".to_owned();
        let record: CacheRecord = serde_json::from_slice(text)
            .map_err(|error| format!("its record is corrupt: {error}"))?;
        let name = Path::new(&record.code)
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(corrupt)?;
        let mac = hex::decode(&record.mac).map_err(|_| corrupt())?;
        let code_mac = hex::decode(&record.code_mac).map_err(|_| corrupt())?;
        let claim = EntryClaim {
            maker: self.maker,
            digest,
            notes: record.notes.get().as_bytes(),
            code: &code_mac,
        };
        let code = StoredCode {
            digest,
            name: name.to_owned(),
            mac: code_mac.clone(),
        };
        if !self.key.verify_entry(&mac, claim) {
            self.remove_code(&code);
            return Err(FORGED_MESSAGE.to_owned());
        }
        let notes = serde_json::from_str(record.notes.get()).map_err(|_| corrupt())?;
        Ok(CachedComponent { notes, code })
    }

    /// Opens the code of an entry that was found. The duration grows with the size of the code.
    /// Removes and logs an entry whose code is damaged or not signed by this user.
    ///
    /// # Errors
    ///
    /// The code cannot be used in this server. The component must be compiled again, to replace the
    /// code or to find the reason.
    pub(crate) fn open_code(
        &self,
        engine: &Engine,
        code: &StoredCode,
    ) -> Result<Component, UnusableEntry> {
        self.verify_and_open(engine, code).inspect_err(|unusable| {
            if let UnusableEntry::Damaged(why) = unusable {
                self.drop_entry(code.digest, why);
            }
        })
    }

    fn verify_and_open(
        &self,
        engine: &Engine,
        code: &StoredCode,
    ) -> Result<Component, UnusableEntry> {
        let unread =
            |error: io::Error| UnusableEntry::Damaged(format!("cannot read its code: {error}"));
        let (file, _) = self.folder.open_file(&code.name).map_err(unread)?;
        if !self.key.verify_code(&code.mac, &file).map_err(unread)? {
            self.remove_code(code);
            return Err(UnusableEntry::Damaged(FORGED_MESSAGE.to_owned()));
        }
        open_file(engine, &file).map_err(|error| {
            let root = error.root_cause().to_string();
            if describe_too_large(&root).is_some() {
                UnusableEntry::Unfit
            } else {
                UnusableEntry::Damaged(root)
            }
        })
    }

    /// Removes the file, so that a later compilation does not find it. The file can belong to
    /// another entry, which stays.
    fn remove_code(&self, code: &StoredCode) {
        if code.name.starts_with(&self.file_stem(code.digest)) {
            drop(fs::remove_file(self.folder.path.join(&code.name)));
        }
    }

    /// Returns whether the cache has the component with this digest, in hexadecimal.
    pub(crate) fn contains(&self, digest: &str) -> bool {
        self.record_path(digest).exists()
    }

    /// Returns the notes about the files in a plugin folder that
    /// [`CompileCache::write_folder_notes`] wrote last.
    pub(crate) fn folder_notes(&self, folder: &Path) -> Option<String> {
        let name = self.folder_name(folder);
        let mut text = Vec::new();
        let (file, _) = self.folder.open_file(&name).ok()?;
        file.take(MAX_FOLDER_NOTES_BYTES)
            .read_to_end(&mut text)
            .ok()?;
        let record: Option<SignedNotes> = serde_json::from_slice(&text).ok();
        let notes = record.and_then(|SignedNotes { mac, notes }| {
            let (mac, path) = (hex::decode(mac).ok()?, folder.as_os_str().as_bytes());
            let is_ours = self
                .key
                .verify_folder(&mac, self.maker, path, notes.get().as_bytes());
            is_ours.then(|| notes.get().to_owned())
        });
        if notes.is_none() {
            tracing::warn!(
                "compile cache: the stored state of the plugin folder is corrupt; each file is read again"
            );
            drop(fs::remove_file(self.folder.path.join(&name)));
        }
        Self::mark_used(&self.folder.path.join(name));
        notes
    }

    /// Writes notes about the files in a plugin folder, as JSON. Errors are only logged: without
    /// the notes, the next start is slower.
    pub(crate) fn write_folder_notes(&self, folder: &Path, notes: Box<RawValue>) {
        let write = || -> io::Result<()> {
            let mac = self.key.sign_folder(
                self.maker,
                folder.as_os_str().as_bytes(),
                notes.get().as_bytes(),
            );
            let record = serde_json::to_vec(&SignedNotes {
                mac: hex::encode(mac),
                notes,
            })?;
            if record.len() as u64 > MAX_FOLDER_NOTES_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut file = self.create_temporary()?;
            file.write_all(&record)?;
            // Not synced: damage after a system crash is detected.
            file.persist(self.folder.path.join(self.folder_name(folder)))?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::debug!(
                "compile cache: notes about the plugin folder could not be written: {error}"
            );
        }
    }

    fn folder_name(&self, folder: &Path) -> String {
        let digest: [u8; 32] = Sha256::digest(folder.as_os_str().as_bytes()).into();
        format!(
            "{}-{:016x}.{FOLDER_NOTES_EXTENSION}",
            Digest::new(digest),
            self.maker
        )
    }

    /// Returns why the component with this digest could not be loaded under these conditions.
    /// Returns `None` if that is not known, or was found out more than [`REFUSAL_RETENTION`] ago.
    /// Removes and logs a record that is damaged or not signed by this user.
    pub(crate) fn find_refusal(&self, digest: Digest, conditions: &str) -> Option<StoredRefusal> {
        let name = self.refusal_name(digest);
        let (file, _) = self.folder.open_file(&name).ok()?;
        // A time in the future counts as too old.
        let age = file.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        if age > REFUSAL_RETENTION {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_REFUSAL_BYTES).read_to_end(&mut text).ok()?;
        let record: Option<SignedNotes> = serde_json::from_slice(&text).ok();
        let found = record.and_then(|SignedNotes { mac, notes }| {
            let mac = hex::decode(mac).ok()?;
            let is_ours = self
                .key
                .verify_refusal(&mac, self.maker, digest, notes.get().as_bytes());
            if is_ours {
                serde_json::from_str::<RefusalNotes>(notes.get()).ok()
            } else {
                None
            }
        });
        let Some(RefusalNotes {
            conditions: stored,
            refusal,
        }) = found
        else {
            tracing::warn!(%digest, "compile cache: a corrupt refusal was dropped; its component is compiled again");
            drop(fs::remove_file(self.folder.path.join(name)));
            return None;
        };
        (stored == conditions).then_some(refusal)
    }

    /// Stores why the component with this digest cannot be loaded under these conditions. Errors
    /// are only logged: without the record, the component is tried again at the next start.
    pub(crate) fn insert_refusal(&self, digest: Digest, conditions: &str, refusal: &StoredRefusal) {
        let write = || -> io::Result<()> {
            let notes = RefusalNotes {
                conditions: conditions.to_owned(),
                refusal: refusal.clone(),
            };
            let notes = serde_json::value::to_raw_value(&notes)?;
            let mac = self
                .key
                .sign_refusal(self.maker, digest, notes.get().as_bytes());
            let record = serde_json::to_vec(&SignedNotes {
                mac: hex::encode(mac),
                notes,
            })?;
            if record.len() as u64 > MAX_REFUSAL_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut file = self.create_temporary()?;
            file.write_all(&record)?;
            // Not synced: damage after a system crash is detected.
            file.persist(self.refusal_path(digest))?;
            if self.record_growth(record.len() as u64) {
                self.evict();
            }
            Ok(())
        };
        if let Err(error) = write() {
            tracing::debug!(%digest, "compile cache: a refusal could not be written: {error}");
        }
    }

    fn refusal_name(&self, digest: Digest) -> String {
        format!("{}.{REFUSAL_EXTENSION}", self.file_stem(digest))
    }

    fn refusal_path(&self, digest: Digest) -> PathBuf {
        self.folder.path.join(self.refusal_name(digest))
    }

    /// Creates a file for the compiler's output, which [`CompileCache::insert`] can add to the
    /// cache.
    pub(crate) fn create_temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(&self.folder.path)
    }

    /// Adds compiled code and its notes, in the place of a refusal. Errors are only logged: without
    /// the entry, the next start is slower.
    pub(crate) fn insert(&self, digest: Digest, code: NamedTempFile, notes: &ComponentNotes) {
        // Usually, there is none.
        drop(fs::remove_file(self.refusal_path(digest)));
        if let Err(error) = self.try_insert(digest, code, notes) {
            tracing::warn!(%digest, "compile cache: an entry could not be written: {error}");
        }
    }

    fn try_insert(
        &self,
        digest: Digest,
        code: NamedTempFile,
        notes: &ComponentNotes,
    ) -> io::Result<()> {
        // Another server added it first. Two compilations produce different bytes, and a second
        // file would be superfluous.
        if self.record_path(digest).exists() {
            return Ok(());
        }
        let notes = serde_json::value::to_raw_value(notes)?;
        let code_mac = self.key.sign_code(code.as_file())?;
        let claim = EntryClaim {
            maker: self.maker,
            digest,
            notes: notes.get().as_bytes(),
            code: &code_mac,
        };
        let (mac, code_mac) = (
            hex::encode(self.key.sign_entry(claim)),
            hex::encode(code_mac),
        );
        // The name contains the start of the authentication code, so that the files of two servers
        // that compile the same component do not collide.
        let name = format!(
            "{}-{}.cwasm",
            self.file_stem(digest),
            mac.get(..HASH_DIGITS).unwrap_or_default()
        );
        code.as_file().sync_all()?;
        let path = self.folder.path.join(&name);
        let length = code.as_file().metadata()?.len();
        code.persist(&path)?;
        let record = CacheRecord {
            code: name,
            code_mac,
            mac,
            notes,
        };
        // Code without a record would waste space on a full disk permanently.
        let length = length
            + self
                .write_record(digest, &record)
                .inspect_err(|_| drop(fs::remove_file(path)))?;
        if self.record_growth(length) {
            self.evict();
        }
        Ok(())
    }

    /// Adds a new entry to the fill level. Returns whether the directory should be listed again.
    fn record_growth(&self, length: u64) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        level.bytes = level.bytes.saturating_add(length);
        level.bytes > self.size
            || level
                .listed
                .is_none_or(|(at, took)| at.elapsed() >= took * RELIST_FACTOR)
    }

    /// Writes the record. Returns its length in bytes.
    fn write_record(&self, digest: Digest, record: &CacheRecord) -> io::Result<u64> {
        let mut file = self.create_temporary()?;
        let text = serde_json::to_vec(record)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(self.record_path(digest))?;
        Ok(text.len() as u64)
    }

    /// Returns the common prefix of the names of an entry's files.
    fn file_stem(&self, digest: impl std::fmt::Display) -> String {
        format!("{digest}-{:016x}", self.maker)
    }

    fn record_name(&self, digest: impl std::fmt::Display) -> String {
        format!("{}.json", self.file_stem(digest))
    }

    fn record_path(&self, digest: impl std::fmt::Display) -> PathBuf {
        self.folder.path.join(self.record_name(digest))
    }

    fn mark_used(record: &Path) {
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

    /// Removes files of killed servers: temporary files, and code and records without each other.
    fn sweep(&self) {
        let files = self.list_files();
        let orphans = find_orphans(&files);
        for file in &files {
            let unfinished = file.name.starts_with(TEMPORARY_PREFIX) && file.is_abandoned();
            let is_expired = file.is_expired_folder_notes() || file.is_expired_refusal();
            if unfinished || orphans.contains(&file.name) || is_expired {
                drop(fs::remove_file(self.folder.path.join(&file.name)));
            }
        }
    }

    /// Removes the oldest refusals beyond [`MAX_REFUSALS`]. Then removes orphans, and then the
    /// least recently used components and refusals, until the rest is within the size limit.
    /// Entries of other builds are no longer used and are therefore removed early.
    fn evict(&self) {
        let began = Instant::now();
        let mut files = self.list_files();
        files.sort_by_key(|file| file.used);
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
        let listed = |bytes| {
            let level = CacheLevel {
                bytes,
                listed: Some((Instant::now(), began.elapsed())),
            };
            *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
        };
        listed(total);
        if total <= self.size {
            return;
        }
        files.retain(|file| !file.name.starts_with(TEMPORARY_PREFIX));
        let orphans = find_orphans(&files);
        let (alone, whole): (Vec<_>, Vec<_>) =
            files.iter().partition(|file| orphans.contains(&file.name));
        // Remove the record first: code without a record only wastes space.
        let entries = whole
            .iter()
            .filter(|file| file.has_extension("json") || file.is_refusal());
        let entries = entries.filter_map(|file| Path::new(&file.name).file_stem()?.to_str());
        let entries = entries.flat_map(|key| {
            let of_entry = whole.iter().filter(move |file| file.name.starts_with(key));
            let (record, code): (Vec<_>, Vec<_>) =
                of_entry.partition(|file| file.name.strip_suffix(".json") == Some(key));
            record.into_iter().chain(code)
        });
        for file in alone.iter().chain(entries) {
            if total <= self.size {
                break;
            }
            if fs::remove_file(self.folder.path.join(&file.name)).is_ok() {
                total = total.saturating_sub(file.length);
            }
        }
        listed(total);
    }

    fn list_files(&self) -> Vec<CacheFile> {
        let entries = fs::read_dir(&self.folder.path)
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_cache_file))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some(CacheFile {
                    name: entry.file_name().into_string().ok()?,
                    length: metadata.len(),
                    used: metadata.modified().ok()?,
                })
            })
            .collect()
    }
}

/// Returns the names of code files without a record, and of records without a code file. New files
/// are excluded: another server might be about to write the rest.
fn find_orphans(files: &[CacheFile]) -> BTreeSet<String> {
    // `<digest>-<maker>`, which both names have.
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
    let (records, codes) = (stems(".json"), stems(".cwasm"));
    let alone = |name: &str| match Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("json") => !codes.contains(&stem(name)),
        Some("cwasm") => !records.contains(&stem(name)),
        _ => false,
    };
    let found = files
        .iter()
        .filter(|file| file.is_abandoned() && alone(&file.name));
    found.map(|file| file.name.clone()).collect()
}

/// Returns whether a file with this name belongs to the cache. Other files in the directory are not
/// touched.
fn is_cache_file(name: &str) -> bool {
    let digest = name
        .get(..DIGEST_DIGITS)
        .is_some_and(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.starts_with(TEMPORARY_PREFIX)
        || (digest && name.get(DIGEST_DIGITS..=DIGEST_DIGITS) == Some("-"))
}

/// The file extension of notes about a plugin folder.
const FOLDER_NOTES_EXTENSION: &str = "files";

/// Maximum size of notes about a plugin folder, in bytes.
const MAX_FOLDER_NOTES_BYTES: u64 = 64 << 20;

/// Time without use after which notes about a plugin folder are removed.
const FOLDER_NOTES_RETENTION: Duration = Duration::from_hours(30 * 24);

/// The file extension of refusals.
const REFUSAL_EXTENSION: &str = "refused";

/// Maximum size of a refusal, in bytes.
const MAX_REFUSAL_BYTES: u64 = 64 << 10;

/// Maximum number of refusals.
const MAX_REFUSALS: usize = 1_000;

/// Time after which a refused component is tried again: a guest can say something else at another
/// time.
const REFUSAL_RETENTION: Duration = Duration::from_hours(7 * 24);

/// A file of the cache.
struct CacheFile {
    name: String,
    length: u64,
    used: SystemTime,
}

impl CacheFile {
    fn is_expired_folder_notes(&self) -> bool {
        self.has_extension(FOLDER_NOTES_EXTENSION)
            && self
                .used
                .elapsed()
                .is_ok_and(|age| age > FOLDER_NOTES_RETENTION)
    }

    fn is_refusal(&self) -> bool {
        self.has_extension(REFUSAL_EXTENSION)
    }

    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.name)
            .extension()
            .is_some_and(|found| found == extension)
    }

    fn is_expired_refusal(&self) -> bool {
        self.is_refusal() && self.used.elapsed().is_ok_and(|age| age > REFUSAL_RETENTION)
    }

    /// Returns whether it is so old that no server can still be writing it or a file that belongs
    /// to it.
    fn is_abandoned(&self) -> bool {
        self.used.elapsed().is_ok_and(|age| age > ABANDONED_AGE)
    }
}

#[cfg(test)]
mod tests;
