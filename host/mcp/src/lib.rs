//! The Model Context Protocol: JSON-RPC, revisions, stdio and HTTP.
//!
//! A transport ([`stdio`], [`http`]) parses bytes into messages (`jsonrpc`), finds the `session` of
//! each message, and passes it to `dispatch`. That module finds the `method`, determines the
//! `rules` that apply, and calls the method's file in `methods`. Methods that enter a plugin share
//! `entry`, and list methods share `paging`. `shape` and `outcome` build the response for the
//! revision, and `outbox` queues it. The content of responses comes from a [`Host`], a trait that
//! this crate defines. This crate does not depend on wasmtime, the plugin folder or the
//! configuration file. No other crate handles the differences between revisions.
//!
//! To add a transport, add a module next to the two. To add a method, add a file and a row in
//! `method`. To add a revision, add a row in `revision`.

mod access;
#[cfg(test)]
mod asking;
mod caller;
mod capabilities;
mod changes;
#[cfg(test)]
mod conversation;
mod cursor;
mod detached;
mod dispatch;
mod elsewhere;
mod entry;
mod host;
mod in_flight;
mod interview;
mod known;
mod list;
mod listings;
mod local;
mod method;
mod methods;
mod object;
mod observer;
mod outbox;
mod outcome;
mod paging;
mod params;
#[cfg(test)]
mod peer;
mod pending;
mod question;
mod quota;
mod request_state;
mod retry;
mod revision;
mod rules;
mod session;
mod shape;
#[cfg(test)]
mod stub;
mod tasks;
mod unreadable;
mod updates;
mod view;
mod weight;
mod wish;
mod written;

pub mod http;
pub mod jsonrpc;
pub mod stdio;
pub mod streams;

pub use self::access::{CallerRights, NamePattern};
pub use self::caller::Caller;
pub use self::capabilities::CapabilityNames;
pub use self::elsewhere::{AnsweredElsewhere, OperatorAnswer, PendingQuestions};
pub use self::host::{
    ClientCall, ClientShare, Host, ListPage, MetricsForm, ProtocolOptions, QueuePlace, RequestWire, ServerInfo,
    TrafficSource, TransportTraffic,
};
pub use self::listings::PageCache;
pub use self::local::{LocalClient, LocalMessage};
pub use self::quota::{QuotaExhausted, QuotaPortion, SharedQuota};
pub use self::request_state::RequestStates;
pub use self::revision::Revision;
pub use self::tasks::{TaskOptions, TaskTable};
pub use self::updates::ResourceUpdates;
pub use self::view::CallerView;
pub use self::written::{prompt_json, resource_json, result_json, template_json, tool_json};
