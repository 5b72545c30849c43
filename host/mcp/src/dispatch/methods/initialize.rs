//! `initialize`: starts a session.

use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

use super::{MethodResult, add_instructions};
use crate::host::caller::Caller;
use crate::protocol::capabilities::CapabilityNames;
use crate::protocol::jsonrpc::truncate_quote;
use crate::protocol::lenient_object::object;
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::response::server_description;
use crate::session::client_session::{NegotiatedSession, Session, SessionChannel};

#[derive(Deserialize)]
struct InitializeParams<'a> {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default, deserialize_with = "object")]
    capabilities: CapabilityNames,
    /// Used only for the log: clients may send anything here.
    #[serde(rename = "clientInfo", borrow)]
    client_info: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ClientInfo {
    name: Option<String>,
    version: Option<String>,
}

/// Name prefixes of clients that request a list again after a change notification. Other clients
/// may list once, when they connect. No revision lets a client declare this.
const LIST_REFRESHING_CLIENTS: [&str; 2] = ["claude-code", "Visual Studio Code"];

fn follows_lists(name: &str) -> bool {
    LIST_REFRESHING_CLIENTS
        .iter()
        .any(|known| name.starts_with(known))
}

pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
) -> MethodResult {
    let params: InitializeParams<'_> = read(params)?;
    let requested =
        Revision::parse(&params.protocol_version).filter(|revision| revision.features().sessions);
    let revision = requested.unwrap_or(Revision::NEWEST_SESSION);
    let capabilities = params.capabilities;
    let info = params
        .client_info
        .and_then(|info| serde_json::from_str(info.get()).ok());
    let ClientInfo { name, version } = info.unwrap_or_default();
    session.negotiated.send_replace(NegotiatedSession {
        revision: Some(revision),
        capabilities,
        follows_lists: session.channel != SessionChannel::OneRequest
            && name.as_deref().is_some_and(follows_lists),
        ..NegotiatedSession::default()
    });
    tracing::info!(
        client = truncate_quote(name.as_deref().unwrap_or("unnamed")),
        version = version.as_deref().map(truncate_quote),
        caller = caller.name,
        requested = truncate_quote(&params.protocol_version),
        %revision,
        "client connected"
    );
    let mut result = Map::new();
    result.insert("protocolVersion".into(), revision.as_str().into());
    let mut capabilities = server_description::capabilities(revision, caller.is_identified());
    if session.channel == SessionChannel::OneRequest {
        server_description::remove_session_capabilities(&mut capabilities);
    }
    result.insert("capabilities".into(), capabilities);
    result.insert(
        "serverInfo".into(),
        server_description::full_server_info(&session.server.options().server, revision),
    );
    add_instructions(&mut result, session, caller).await;
    // The client is notified of changes after this. Its next list requests include the plugins
    // loaded in the meantime.
    session
        .client_lists
        .reset(&caller.rights, session.server.lists().view(&caller.rights));
    Ok(result)
}
