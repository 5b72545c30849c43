//! Notes about the files of plugin folders.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toolbay_model::Digest;

use super::cache_file::FOLDER_NOTES_EXTENSION;
use super::compile_cache::{CompileCache, SignedNotes};

/// Maximum size of notes about a plugin folder, in bytes.
const MAX_FOLDER_NOTES_BYTES: u64 = 64 << 20;

impl CompileCache {
    /// Returns the notes about the files in a plugin folder that
    /// [`CompileCache::write_folder_notes`] wrote last.
    pub(crate) fn read_folder_notes(&self, folder: &Path) -> Option<String> {
        let name = self.folder_name(folder);
        let mut text = Vec::new();
        let (file, _) = self.folder.open_file(&name).ok()?;
        file.take(MAX_FOLDER_NOTES_BYTES)
            .read_to_end(&mut text)
            .ok()?;
        let record: Option<SignedNotes> = serde_json::from_slice(&text).ok();
        let notes = record.and_then(|SignedNotes { mac, notes }| {
            let mac = hex::decode(mac).ok()?;
            let path = folder.as_os_str().as_bytes();
            let is_ours = self
                .key
                .verify_folder(&mac, self.build_id, path, notes.get().as_bytes());
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
                self.build_id,
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

    pub(super) fn folder_name(&self, folder: &Path) -> String {
        let digest: [u8; 32] = Sha256::digest(folder.as_os_str().as_bytes()).into();
        format!(
            "{}-{:016x}.{FOLDER_NOTES_EXTENSION}",
            Digest::new(digest),
            self.build_id
        )
    }
}
