//! Where pages get from what they show.

use std::sync::Arc;

use crate::operations::ConsoleOperations;
use crate::watch::ServerActivity;

/// Where pages get from what they show.
pub(crate) struct PageContext {
    /// What the server offers.
    pub(crate) operations: Arc<dyn ConsoleOperations>,
    /// What happens in it.
    pub(crate) watch: Arc<ServerActivity>,
}
