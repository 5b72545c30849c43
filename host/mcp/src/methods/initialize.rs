//! `initialize`: starts a session.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Answered;
use crate::caller::Caller;
use crate::params::read;
use crate::revision::Revision;
use crate::session::{Negotiated, Session};
use crate::shape;

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default)]
    capabilities: Map<String, Value>,
    #[serde(rename = "clientInfo")]
    client_info: Option<Value>,
}

pub(crate) fn answer(session: &Session, caller: &Caller, params: Option<&RawValue>) -> Answered {
    let params: Params = read(params)?;
    let asked = Revision::parse(&params.protocol_version).filter(|revision| revision.features().sessions);
    let revision = asked.unwrap_or(Revision::NEWEST_SESSION);
    let capabilities = params.capabilities;
    session.negotiated.send_replace(Negotiated { revision: Some(revision), capabilities, ..Negotiated::default() });
    session.known.begin(&caller.rights, session.host.view(&caller.rights));
    let client = params.client_info.unwrap_or_default();
    let name = client.get("name").and_then(Value::as_str).unwrap_or("unnamed");
    tracing::info!(client = name, caller = caller.name, requested = params.protocol_version, %revision, "client connected");
    let mut result = Map::new();
    result.insert("protocolVersion".into(), revision.as_str().into());
    result.insert("capabilities".into(), shape::capabilities());
    result.insert("serverInfo".into(), shape::server_info(revision));
    shape::add_instructions(&mut result, &session.host.options().instructions);
    Ok(result)
}
