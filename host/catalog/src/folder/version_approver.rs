//! Approves held versions for an operator of the console.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use toolbay_lock::{LOCK_FILE_NAME, LockFile};

use crate::folder::approval_file::ApprovedVersion;
use crate::folder::folder_lock::{FolderLock, read_lock_file};
use crate::folder::load_error::HeldVersion;

/// Approves held versions of the plugins in a folder.
#[derive(Clone, Debug)]
pub struct VersionApprover {
    lock: Arc<FolderLock>,
    folder: Arc<Path>,
}

impl VersionApprover {
    pub(crate) fn new(lock: Arc<FolderLock>, folder: Arc<Path>) -> Self {
        Self { lock, folder }
    }

    /// Returns the approval of a version of this plugin that is in force, if there is one.
    pub fn approval(&self, id: &str) -> Option<ApprovedVersion> {
        let rules = self.lock.rules()?;
        rules.approvals.get(id).cloned()
    }

    /// Approves a held version of the plugin `id` in the name of the operator `by`. It is loaded
    /// soon afterwards. Blocks.
    ///
    /// # Errors
    ///
    /// Returns a one-line reason. The lock file is damaged, deleted or has another pin than the one
    /// that the version was compared with, or the approval cannot be stored.
    pub fn approve(&self, id: &str, held: &HeldVersion, by: &str) -> Result<(), String> {
        let Some(approvals) = self.lock.approval_file() else {
            return Err("this server does not store approvals".to_owned());
        };
        // The file decides, and not what was read of it before.
        let file = read_lock_file(&self.folder)?
            .ok_or_else(|| format!("{LOCK_FILE_NAME}: it was deleted"))?;
        let digest = |id: &str| Some(LockFile::pin_digest(id, file.plugins.get(id)?));
        if digest(id) != held.base {
            return Err(format!("{LOCK_FILE_NAME} has changed"));
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let approval = ApprovedVersion {
            base: held.base,
            version: held.version,
            component: held.digests.component,
            grant: held.digests.grant,
            by: by.to_owned(),
            at: since_1970.map_or(0, |time| time.as_secs()),
        };
        approvals.add(id, approval, |id, approval| digest(id) == approval.base)?;
        self.lock.notify_approval();
        Ok(())
    }
}
