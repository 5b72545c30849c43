//! `ping`: returns an empty result.

use serde_json::Map;

use super::Answered;

#[expect(clippy::unnecessary_wraps, reason = "methods answer alike")]
pub(crate) fn answer() -> Answered {
    Ok(Map::new())
}
