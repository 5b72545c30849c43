//! Reasons why components could not be loaded, as the compile cache stores them.

use serde::{Deserialize, Serialize};

/// Stored reason why a component could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoredRefusal {
    /// The reason, in one line.
    pub reason: String,
    /// True if the component is certain to be refused again. False if loading it took too long, or
    /// failed for a reason that may lie in the machine.
    pub is_final: bool,
}

/// Stored information about a refused component.
#[derive(Deserialize, Serialize)]
pub(super) struct RefusalNotes {
    /// The programs and settings with which the component was refused.
    pub(super) conditions: String,
    pub(super) refusal: StoredRefusal,
}
