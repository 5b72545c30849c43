//! Admission state of one client.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::Semaphore;
use toolbay_model::CallerIdentity;

use crate::call::caller_state::CallerState;
use crate::limits::plugin_table::PluginTable;
use crate::limits::rate_counter::RateCounter;
use crate::limits::server_permits::ClientParty;

/// Admission state of one client: running calls, queued calls, rates and crashes. A stdio session
/// is one client.
#[derive(Debug)]
pub(crate) struct ClientAdmission {
    /// Name of the caller, for the log and as the key of its stored results.
    pub(crate) name: String,
    /// If set, results are returned inline regardless of their size, because the embedder cannot
    /// follow links.
    pub(crate) is_embedder: bool,
    /// The caller, if it is authenticated.
    pub(crate) identity: Option<CallerIdentity>,
    /// State for each plugin that the caller has called. Freed together with the client.
    pub(crate) records: PluginTable<CallerState>,
    /// The rate of its calls; `None` if that is not limited.
    pub(crate) rate: ArcSwapOption<RateCounter>,
    /// Identifies the client as a party of the shared semaphores.
    pub(crate) party: ClientParty,
    /// Permits for calls that run, wait or are queued.
    pub(crate) queue_permits: Arc<Semaphore>,
}
