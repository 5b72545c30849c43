//! Stored reasons why components could not be loaded.

use std::fs;
use std::io::{self, Read as _, Write as _};

use serde::{Deserialize, Serialize};
use toolbay_model::Digest;

use super::cache_file::REFUSAL_RETENTION;
use super::compile_cache::{CompileCache, SignedNotes};

/// Maximum size of a refusal, in bytes.
const MAX_REFUSAL_BYTES: u64 = 64 << 10;

/// Stored reason why a component could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoredRefusal {
    /// The reason, in one line.
    pub reason: String,
    /// True if the component is certain to be refused again. False if loading it timed out, or may
    /// have failed because of the machine.
    pub is_final: bool,
}

/// Stored information about a refused component.
#[derive(Deserialize, Serialize)]
struct RefusalNotes {
    /// The programs and settings with which the component was refused.
    conditions: String,
    refusal: StoredRefusal,
}

impl CompileCache {
    /// Returns why the component with this digest could not be loaded under these conditions.
    /// Returns `None` if no such reason is stored, or if it is older than [`REFUSAL_RETENTION`].
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
        let refusal_notes = record.and_then(|SignedNotes { mac, notes }| {
            let mac = hex::decode(mac).ok()?;
            let is_ours =
                self.key
                    .verify_refusal(&mac, self.build_id, digest, notes.get().as_bytes());
            if is_ours {
                serde_json::from_str::<RefusalNotes>(notes.get()).ok()
            } else {
                None
            }
        });
        let Some(RefusalNotes {
            conditions: stored_conditions,
            refusal,
        }) = refusal_notes
        else {
            tracing::warn!(%digest, "compile cache: a corrupt refusal was dropped; its component is compiled again");
            drop(fs::remove_file(self.folder.path.join(name)));
            return None;
        };
        (stored_conditions == conditions).then_some(refusal)
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
                .sign_refusal(self.build_id, digest, notes.get().as_bytes());
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
}
