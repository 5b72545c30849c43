//! The data sources of the pages.

use std::sync::Arc;

use crate::operations::ConsoleOperations;
use crate::watch::ServerActivity;

/// The data sources that all pages share.
pub(crate) struct PageContext {
    /// The server and its operations.
    pub(crate) operations: Arc<dyn ConsoleOperations>,
    /// The recorded activity of the server.
    pub(crate) watch: Arc<ServerActivity>,
}
