//! Policies for tool results that are too large.

use serde::{Deserialize, Serialize};

/// The policy for a tool result that is larger than its client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OversizePolicy {
    /// The client receives the part that fits, and a link to the whole result.
    #[default]
    Link,
    /// The call fails.
    Error,
}
