//! Bounds that several tables share.

use serde::Deserializer;
use toolbay_model::setting::count;

/// Maximum value of settings whose memory use grows with them: calls per client, connections,
/// sessions.
pub(super) const MAX_COUNT: usize = 1_000_000;

/// Parses a number from 1 to [`MAX_COUNT`].
pub(super) fn many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 1, MAX_COUNT)
}
