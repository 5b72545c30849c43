//! The places of one plugin, which its callers share.

use std::collections::HashMap;
use std::sync::Arc;

use crate::fair_semaphore::{FairSemaphore, PartyId};

/// The places of one plugin, and its part of the server's memory.
#[derive(Debug)]
pub(crate) struct PluginPlaces {
    /// Mixed into the number of each target, so that one client can tell the targets of all plugins apart.
    pub(crate) number: u64,
    pub(crate) own: SharedPart,
    pub(crate) waits: Arc<FairSemaphore>,
    /// Of each thing that it offers, if these are several: none may have all.
    pub(crate) targets: HashMap<PartyId, SharedPart>,
}

/// Places and memory that callers share.
#[derive(Debug)]
pub(crate) struct SharedPart {
    pub(crate) calls: Arc<FairSemaphore>,
    /// In KiB.
    pub(crate) memory: Arc<FairSemaphore>,
}
