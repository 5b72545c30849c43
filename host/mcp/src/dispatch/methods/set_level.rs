//! `logging/setLevel`: sets the lowest level of log messages that the client receives.

use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;
use toolbay_model::LogLevel;

use super::MethodResult;
use crate::protocol::params::read;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct SetLevelParams {
    level: LogLevel,
}

pub(crate) fn answer(session: &Session, params: Option<&RawValue>) -> MethodResult {
    let SetLevelParams { level } = read(params)?;
    session
        .negotiated
        .send_modify(|negotiated| negotiated.min_log_level = level);
    Ok(Map::new())
}
