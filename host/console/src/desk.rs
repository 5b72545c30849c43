//! Where pages get from what they show.

use std::sync::Arc;

use crate::operations::Operations;
use crate::watch::Watch;

/// Where pages get from what they show.
pub(crate) struct Desk {
    /// What the server offers.
    pub(crate) operations: Arc<dyn Operations>,
    /// What happens in it.
    pub(crate) watch: Arc<Watch>,
}
