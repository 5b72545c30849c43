//! `ping`: returns an empty result.

use serde_json::Map;

use super::MethodResult;

#[expect(clippy::unnecessary_wraps, reason = "methods answer alike")]
pub(crate) fn answer() -> MethodResult {
    Ok(Map::new())
}
