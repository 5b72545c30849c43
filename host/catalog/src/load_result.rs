//! Results of a load, and the version in service afterwards.

use std::sync::Arc;

use tokio::time::Instant;

use crate::grant_age::GrantAge;
use crate::load_error::LoadError;
use crate::plugin::Plugin;

/// A loaded plugin and warnings for the operator.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The loaded plugin.
    pub plugin: Arc<Plugin>,
    /// Warnings for the operator, such as limits that were lowered to a ceiling.
    pub remarks: Vec<String>,
}

/// State of a plugin before a load.
#[derive(Debug, Default)]
pub(crate) struct PreviousVersion {
    /// The version in service.
    pub(crate) plugin: Option<Arc<Plugin>>,
    /// True if the server's rules have changed since that version was loaded.
    pub(crate) are_rules_new: bool,
    /// True at a server start: a component that is known from the previous start need not be read.
    pub(crate) is_start: bool,
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
    Narrowed(LoadOutcome),
    /// No version: the change cannot be applied to the version in service.
    NoVersion,
}
