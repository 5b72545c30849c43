//! `logging/setLevel`: sets the lowest level of log messages that the client receives.

use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;
use toolbay_model::LogLevel;

use super::Answered;
use crate::params::read;
use crate::session::Session;

#[derive(Deserialize)]
struct Params {
    level: LogLevel,
}

pub(crate) fn answer(session: &Session, params: Option<&RawValue>) -> Answered {
    let Params { level } = read(params)?;
    session.negotiated.send_modify(|negotiated| negotiated.log = level);
    Ok(Map::new())
}
