//! Contents of the compile cache other than code: refusals, and notes about plugin directories.

use std::path::Path;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toolbay_model::Digest;

use crate::cache::StoredRefusal;
use crate::run::sandbox::Sandbox;

impl Sandbox {
    /// Returns the stored reason why the component with this digest could not be loaded, if the
    /// compile cache has one for the current programs and settings. `conditions` describes
    /// everything else that the reason depends on. Blocks for a fraction of a millisecond.
    pub fn find_refusal(&self, digest: Digest, conditions: &str) -> Option<StoredRefusal> {
        self.cache()?
            .find_refusal(digest, &self.full_conditions(conditions)?)
    }

    /// Stores in the compile cache why the component with this digest cannot be loaded under these
    /// conditions. The entry stays until the component is compiled successfully. Blocks for
    /// milliseconds; errors are logged.
    pub fn store_refusal(&self, digest: Digest, conditions: &str, refusal: &StoredRefusal) {
        if let (Some(cache), Some(conditions)) = (self.cache(), self.full_conditions(conditions)) {
            cache.insert_refusal(digest, &conditions, refusal);
        }
    }

    /// Returns a digest of all conditions of a refusal.
    fn full_conditions(&self, conditions: &str) -> Option<String> {
        let basis = self.inner.refusal_basis.as_ref()?;
        let text = format!(
            "{basis} {} {conditions}",
            self.inner.engines.pool_fingerprint()
        );
        Some(hex::encode(Sha256::digest(text)))
    }

    /// Returns the notes that [`Sandbox::save_folder_notes`] stored about the files in a plugin
    /// directory. Only this user can have written them.
    pub fn folder_notes(&self, folder: &Path) -> Option<String> {
        self.cache()?.read_folder_notes(folder)
    }

    /// Stores notes about the files in a plugin directory, as JSON, in the compile cache.
    pub fn save_folder_notes(&self, folder: &Path, notes: Box<RawValue>) {
        if let Some(cache) = self.cache() {
            cache.write_folder_notes(folder, notes);
        }
    }

    /// Returns the reason why the compile cache is off; `None` if it is on.
    pub fn cache_off_reason(&self) -> Option<&str> {
        self.inner.cache.as_ref().err().map(String::as_str)
    }

    /// Removes this server version's entries from the compile cache. Returns the number of
    /// components and their size in bytes. Components that are needed again are recompiled. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if there is no cache, or if a file of it cannot be removed.
    pub fn clear_cache(&self) -> Result<(usize, u64), String> {
        let cache = self.inner.cache.as_ref().map_err(String::clone)?;
        cache
            .clear()
            .map_err(|error| format!("not everything could be removed: {error}"))
    }

    /// Returns whether the compile cache has the component with this digest, in lowercase
    /// hexadecimal.
    pub fn is_cached(&self, digest: &str) -> bool {
        self.inner
            .cache
            .as_ref()
            .is_ok_and(|cache| cache.contains(digest))
    }
}
