//! Entries: compiled components with their notes.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tempfile::NamedTempFile;
use toolbay_model::{ComponentDescription, Digest};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::cache_file::HASH_DIGITS;
use super::code::open_file;
use super::compile_cache::CompileCache;
use super::key::EntryClaim;
use crate::component::plugin_summary::PluginSummary;
use crate::prepare::component_summary::ComponentSummary;
use crate::store::error::describe_too_large;

/// Error message for an entry whose authentication code is wrong.
const FORGED_MESSAGE: &str = "its code is corrupt, or was not compiled for this plugin by this user (wrong authentication code)";

/// The file `<digest>-<build id>.json`. It is written last, so the files that it names are
/// complete.
#[derive(Deserialize, Serialize)]
pub(super) struct CacheRecord {
    /// The name of the file with the code.
    pub(super) code: String,
    /// The message authentication code over the file with the code, in hexadecimal.
    pub(super) code_mac: String,
    /// The message authentication code over the notes and `code_mac`, in hexadecimal.
    pub(super) mac: String,
    /// [`ComponentNotes`], as the exact text that was signed.
    pub(super) notes: Box<RawValue>,
}

/// Stored information about a component.
#[derive(Deserialize, Serialize)]
pub(crate) struct ComponentNotes {
    /// The facts that are available without the code.
    pub(crate) facts: ComponentSummary,
    /// The fingerprint of the settings under which the code was opened: see
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

/// The reason why a compiled component cannot be used.
pub(crate) enum UnusableEntry {
    /// It is damaged.
    Damaged(String),
    /// It is intact but exceeds this server's limits, which are lower than before. Compiling it
    /// again reports the exceeded limit.
    Unfit,
}

impl CompileCache {
    /// Returns the entry of the component with this digest. Removes and logs an entry that is
    /// damaged or not signed by this user.
    pub(crate) fn find(&self, digest: Digest) -> Option<CachedComponent> {
        let path = self.record_path(digest);
        let mut text = Vec::new();
        let read = self
            .folder
            .open_file(&self.record_name(digest))
            .and_then(|(mut file, _)| file.read_to_end(&mut text));
        let lookup = match read {
            Ok(_) => self.read_record(digest, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Err(format!("cannot read its record: {error}")),
        };
        match lookup {
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
            build_id: self.build_id,
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
        let read_error =
            |error: io::Error| UnusableEntry::Damaged(format!("cannot read its code: {error}"));
        let (file, _) = self.folder.open_file(&code.name).map_err(read_error)?;
        if !self.key.verify_code(&code.mac, &file).map_err(read_error)? {
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

    /// Removes the file with the code, unless its name shows that it belongs to another entry.
    fn remove_code(&self, code: &StoredCode) {
        if code.name.starts_with(&self.file_stem(code.digest)) {
            drop(fs::remove_file(self.folder.path.join(&code.name)));
        }
    }

    /// Returns whether the cache has the component with this digest, in hexadecimal.
    pub(crate) fn contains(&self, digest: &str) -> bool {
        self.record_path(digest).exists()
    }

    /// Adds compiled code and its notes, and removes a refusal of the component. Errors are only
    /// logged: without the entry, the next start is slower.
    pub(crate) fn insert(&self, digest: Digest, code: NamedTempFile, notes: &ComponentNotes) {
        // Usually, there is no refusal.
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
            build_id: self.build_id,
            digest,
            notes: notes.get().as_bytes(),
            code: &code_mac,
        };
        let mac = hex::encode(self.key.sign_entry(claim));
        let code_mac = hex::encode(code_mac);
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
        // Code without a record would waste space, on a disk that may be full, until it is swept.
        let length = length
            + self
                .write_record(digest, &record)
                .inspect_err(|_| drop(fs::remove_file(path)))?;
        if self.record_growth(length) {
            self.evict();
        }
        Ok(())
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
}
