//! The data sources of the pages.

use std::sync::Arc;

use crate::activity::ServerActivity;
use crate::operations::ConsoleOperations;

/// The data sources that all pages share.
pub(crate) struct PageContext {
    /// The server and its operations.
    pub(crate) operations: Arc<dyn ConsoleOperations>,
    /// The recorded activity of the server.
    pub(crate) activity: Arc<ServerActivity>,
}
