//! What becomes of a tool's result that is too large.

use serde::{Deserialize, Serialize};

/// What becomes of a tool's result that is larger than its client gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OversizePolicy {
    /// The client gets what fits, and a link to the whole.
    #[default]
    Link,
    /// The call fails.
    Error,
}
