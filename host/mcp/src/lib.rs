//! The Model Context Protocol: JSON-RPC, revisions, stdio and HTTP.
//!
//! A transport ([`stdio`], [`http`]) parses bytes into messages (`jsonrpc`), finds the `session` of
//! each message, and passes it to `dispatch`. That module finds the `method`, determines the
//! `message_context` that apply, and calls the method's file in `methods`. Methods that enter a plugin share
//! `plugin_request`, and list methods share `paging`. `result_encoding` and `call_response` build the response for the
//! revision, and `outbox` queues it. The content of responses comes from a [`Host`], a trait that
//! this crate defines. This crate does not depend on wasmtime, the plugin folder or the
//! configuration file. No other crate handles the differences between revisions.
//!
//! To add a transport, add a module next to the two. To add a method, add a file and a row in
//! `method`. To add a revision, add a row in `revision`.

mod access_rights;
#[cfg(test)]
mod test_questions;
mod caller;
mod capabilities;
mod change_notifications;
#[cfg(test)]
mod revision_messages;
mod cursor;
mod task_start;
mod dispatch;
mod operator_answers;
mod plugin_request;
mod host;
mod in_flight;
mod elicitation;
mod client_lists;
mod list_kind;
mod page_cache;
mod local_client;
mod method;
mod methods;
mod lenient_object;
mod observer;
mod outbox;
mod call_response;
mod paging;
mod params;
#[cfg(test)]
mod test_peer;
mod server_requests;
mod question_encoding;
mod quota;
mod request_state;
mod input_responses;
mod revision;
mod message_context;
mod session;
mod result_encoding;
#[cfg(test)]
mod stub_host;
mod tasks;
mod argument_errors;
mod resource_subscriptions;
mod list_state;
mod json_memory;
mod task_decision;
mod definition_json;

pub mod http;
pub mod jsonrpc;
pub mod stdio;
pub mod process_stdio;

pub use self::access_rights::{CallerRights, NamePattern};
pub use self::caller::Caller;
pub use self::capabilities::CapabilityNames;
pub use self::operator_answers::{AnsweredElsewhere, OperatorAnswer, PendingQuestions};
pub use self::host::{
    ClientCall, ClientShare, Host, ListPage, MetricsForm, ProtocolOptions, QueuePlace, RequestWire, ServerInfo,
    TrafficSource, TransportTraffic,
};
pub use self::page_cache::PageCache;
pub use self::local_client::{LocalClient, LocalMessage};
pub use self::quota::{QuotaExhausted, QuotaPortion, SharedQuota};
pub use self::request_state::RequestStates;
pub use self::revision::Revision;
pub use self::tasks::{TaskOptions, TaskTable};
pub use self::resource_subscriptions::ResourceUpdates;
pub use self::list_state::CallerView;
pub use self::definition_json::{prompt_json, resource_json, result_json, template_json, tool_json};
