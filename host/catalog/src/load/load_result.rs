//! Results of a load, and the version in service afterwards.

use std::sync::Arc;

use tokio::time::Instant;

use crate::folder::grant_age::GrantAge;
use crate::folder::load_error::LoadError;
use crate::version::plugin::Plugin;

/// A loaded plugin and warnings for the operator.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The loaded plugin.
    pub plugin: Arc<Plugin>,
    /// Warnings for the operator, such as limits that were lowered to a ceiling.
    pub remarks: Vec<String>,
}

/// Cause of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoadCause {
    /// The files or the rules changed.
    #[default]
    Change,
    /// The server starts: a component that is known from the previous start need not be read.
    Start {
        /// True if a component whose load took too long at the last start is not tried now: this
        /// load fails, and is retried.
        postpones_slow: bool,
    },
    /// The last load of these files failed.
    Retry,
}

/// State of a plugin before a load.
#[derive(Debug, Default)]
pub(crate) struct LoadBaseline {
    /// The version in service.
    pub(crate) plugin: Option<Arc<Plugin>>,
    /// True if the server's rules have changed since that version was loaded.
    pub(crate) have_rules_changed: bool,
    /// True if that version was approved in the console, and the approval is no longer in force.
    pub(crate) is_approval_void: bool,
    /// The cause of the load.
    pub(crate) cause: LoadCause,
    /// Time since which the grant has been unchanged.
    pub(crate) grant_age: Arc<GrantAge>,
}

/// Result of a load.
#[derive(Debug)]
pub(crate) enum LoadResult {
    /// The files are loaded.
    Loaded(LoadOutcome),
    /// The files must be loaded again at this time, because the grant may still be being written or
    /// the component is being compiled. Until then, this outcome replaces the version in service:
    /// its component with only the rights that the previous grant also allows. `None` if nothing
    /// changes.
    Pending(Option<LoadOutcome>, Instant),
    /// The files cannot be loaded.
    Failed(LoadError, FallbackVersion),
}

/// Version in service when the files cannot be loaded.
#[derive(Debug)]
pub(crate) enum FallbackVersion {
    /// The version in service, unchanged.
    Unchanged,
    /// The component in service with the new grant, or under the new rules.
    Regranted(LoadOutcome),
    /// An approved version, which replaces the one in service, if there is one.
    Approved(LoadOutcome),
    /// No version: the change cannot be applied to the version in service.
    NoVersion,
}
