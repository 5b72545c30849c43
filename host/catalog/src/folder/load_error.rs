//! Reasons why a file cannot currently be loaded.

use std::sync::Arc;

use toolbay_lock::{LockFile, PluginPin, VersionDifference};
use toolbay_model::{CallError, Digest, Limit};

use crate::folder::source_digests::SourceDigests;

/// Reason why a file cannot currently be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file no longer exists.
    Gone,
    /// The file is empty or ends in the middle of a section; it is probably being written. The text
    /// is the reason.
    Incomplete(String),
    /// The file cannot be a plugin. The text is the reason, in one line.
    Refused(String),
    /// The version differs from the lock file and is not put into service.
    Held(Arc<HeldVersion>),
    /// Loading failed for a reason that may pass without a change to the file. The load is retried.
    Transient(String),
}

/// Version of a plugin that is not put into service because it differs from the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldVersion {
    /// Reason, in one line.
    pub reason: String,
    /// Digests of the sources of the version.
    pub digests: SourceDigests,
    /// Digest of the pin that the version was compared with; `None` if the lock file has none.
    pub base: Option<Digest>,
    /// Digest of the pin of the version.
    pub version: Digest,
    /// The pin that the version was compared with.
    pinned: Option<PluginPin>,
    /// The pin of the version. Its size is bounded, as that of what a version in service offers.
    pin: PluginPin,
}

impl HeldVersion {
    pub(crate) fn new(
        id: &str,
        pinned: Option<&PluginPin>,
        pin: PluginPin,
        reason: String,
    ) -> Self {
        Self {
            reason,
            digests: SourceDigests {
                component: pin.component,
                grant: pin.grant,
            },
            base: pinned.map(|pinned| LockFile::pin_digest(id, pinned)),
            version: LockFile::pin_digest(id, &pin),
            pinned: pinned.cloned(),
            pin,
        }
    }

    /// Returns how the version differs from the lock file.
    pub fn difference(&self) -> VersionDifference {
        VersionDifference::new(self.pinned.as_ref(), &self.pin)
    }
}

impl LoadError {
    /// Returns the reason, in one line.
    pub fn reason(&self) -> &str {
        match self {
            Self::Gone => "it no longer exists",
            Self::Incomplete(why) | Self::Refused(why) | Self::Transient(why) => why,
            Self::Held(held) => &held.reason,
        }
    }
}

/// Returns the load error for a plugin whose describe call failed.
pub fn describe_load_error(error: &CallError) -> LoadError {
    let why = match error {
        // No grant key raises this limit.
        CallError::Limit { limit, .. } => limit.message_without_key(),
        CallError::Trap { .. } => format!("it crashed: {error}"),
        CallError::InvalidArguments(text)
        | CallError::Failed(text)
        | CallError::InvalidOutput(text)
        | CallError::Internal(text) => text.clone(),
        CallError::Denied { message, denial } => format!("{message} ({denial})"),
        CallError::Incapable(_) => "a plugin cannot ask questions while it is loaded".to_owned(),
        CallError::Cancelled | CallError::Stopped => "loading was cancelled".to_owned(),
    };
    let why = format!("listing what it offers failed: {}", why.replace('\n', "; "));
    match error {
        // On a busy machine, a guest makes less progress before the deadline. The other limits do
        // not depend on the machine.
        CallError::Limit {
            limit: Limit::Deadline(_),
            ..
        }
        | CallError::Internal(_)
        | CallError::Cancelled => LoadError::Transient(why),
        _ => LoadError::Refused(why),
    }
}
