//! How a load ends, and what is in service then.

use std::sync::Arc;

use tokio::time::Instant;

use crate::grant_age::GrantAge;
use crate::load_error::LoadError;
use crate::plugin::Plugin;

/// A loaded plugin and warnings for the operator.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Warnings for the operator, such as limits that were lowered to a ceiling.
    pub remarks: Vec<String>,
}

/// What there is before a load.
#[derive(Debug, Default)]
pub(crate) struct PreviousVersion {
    /// The version in service.
    pub(crate) plugin: Option<Arc<Plugin>>,
    /// Whether the server's rules have changed since that was loaded.
    pub(crate) are_rules_new: bool,
    /// Whether a component that is known from the start before need not be read.
    pub(crate) is_start: bool,
    /// Since when the grant has been as it is.
    pub(crate) age: Arc<GrantAge>,
}

/// How a load ends.
#[derive(Debug)]
pub(crate) enum LoadResult {
    /// The files are loaded.
    Loaded(LoadOutcome),
    /// The files are to be loaded again at this time: the grant may still be written, or the component is compiled. Until
    /// then, this takes the place of the version in service: its component with what the grant before allows as well.
    /// `None` if nothing changes.
    Pending(Option<LoadOutcome>, Instant),
    /// The files cannot be loaded.
    Failed(LoadError, FallbackVersion),
}

/// What is in service instead of files that cannot be loaded.
#[derive(Debug)]
pub(crate) enum FallbackVersion {
    /// The version in service, as it is.
    Same,
    /// The component in service with the new grant, or under the new rules.
    Narrowed(LoadOutcome),
    /// Nothing: what is new cannot be applied to the version in service.
    Nothing,
}
