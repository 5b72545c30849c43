//! The Model Context Protocol: JSON-RPC, revisions, stdio and HTTP.
//!
//! A transport ([`stdio`], [`http`]) parses bytes into messages (`jsonrpc`), finds the `session` of
//! each message, and passes it to `dispatch`. That module finds the `method`, determines the
//! `message_context`, and calls the method's file in `methods`. Methods that enter a plugin share
//! `plugin_request`, and list methods share `paging`. `definition_encoding`, `result_encoding` and
//! `call_response` build the response for the revision, and `outbox` queues it. The content of
//! responses comes from the host, through the traits [`CallHost`], [`ListSource`] and
//! [`LoadProgress`]. This crate does not depend on wasmtime, the plugin folder or the configuration
//! file. No other crate handles the differences between revisions.
//!
//! To add a transport, add a module next to the two. To add a method, add a file and a row in
//! `method`. To add a revision, add a row in `revision`.

mod dispatch;
mod exchange;
mod host;
mod lists;
mod plugin_request;
mod protocol;
mod response;
mod session;
mod tasks;
#[cfg(test)]
mod testing;
mod transport;

pub use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};

pub use self::exchange::resource_subscriptions::ResourceUpdates;
pub use self::host::caller::Caller;
pub use self::host::interface::{
    CallHost, ClientCall, ClientShare, MetricsForm, ProtocolOptions, QueuePlace, RequestMetadata,
    ServerInfo, TransportTraffic,
};
pub use self::host::list_source::{
    ListItems, ListPage, ListSelection, ListSource, LoadProgress, LoadedPart, PageQuery,
};
pub use self::host::mcp_server::{McpServer, McpServerParts, MetricsSource, SchemaRestriction};
pub use self::host::operator_answers::{OperatorAnswer, OperatorReply, PendingQuestions};
pub use self::host::request_state::RequestStates;
pub use self::lists::access_rights::{CallerRights, NamePattern};
pub use self::lists::list_state::CallerView;
pub use self::protocol::capabilities::CapabilityNames;
pub use self::protocol::jsonrpc;
pub use self::protocol::revision::Revision;
pub use self::response::definition_json::{
    prompt_json, resource_json, result_json, template_json, tool_json,
};
pub use self::tasks::{TaskOptions, TaskTable};
pub use self::transport::local_client::{LocalClient, LocalMessage};
pub use self::transport::{http, process_stdio, stdio};
