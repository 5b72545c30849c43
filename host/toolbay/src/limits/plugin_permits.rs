//! Permits of one plugin, which its callers share.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::fair_semaphore::{FairSemaphore, PartyId};

/// Permits of one plugin, and its share of the server's memory.
#[derive(Debug)]
pub(crate) struct PluginPermits {
    /// Mixed into the party id of each target, so that targets of different plugins are different
    /// parties of a client.
    pub(crate) number: u64,
    pub(crate) total: SharedPart,
    pub(crate) suspended_calls: Arc<FairSemaphore>,
    /// Shares of the plugin's targets, if there are several: no target may use all permits.
    pub(crate) targets: HashMap<PartyId, SharedPart>,
}

/// Permits and memory that callers share.
#[derive(Debug)]
pub(crate) struct SharedPart {
    pub(crate) calls: Arc<FairSemaphore>,
    /// In KiB.
    pub(crate) memory: Arc<FairSemaphore>,
}
