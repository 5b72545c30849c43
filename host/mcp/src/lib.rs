//! The Model Context Protocol: JSON-RPC, revisions, standard streams and HTTP.
//!
//! A transport ([`stdio`], [`http`]) turns bytes into messages (`jsonrpc`), finds the `session` that each belongs to and
//! hands it to `dispatch`, which reads it as a `method`, decides by which `rules` it is answered and has the method
//! answer it: one file each in `methods`. `shape` and `outcome` write what a revision has, `outbox` queues it. What the
//! answers say comes from a [`Host`], a trait that this crate defines: nothing here knows wasmtime, the plugin folder or
//! the configuration file, and nothing outside knows a revision.
//!
//! A further transport is a module beside the two; a further method is a file and a row in `method`; a further revision
//! is a row in `revision`.

mod access;
mod caller;
mod changes;
mod cursor;
mod dispatch;
mod host;
mod in_flight;
mod known;
mod method;
mod methods;
mod observer;
mod outbox;
mod outcome;
mod params;
mod revision;
mod rules;
mod session;
mod shape;
#[cfg(test)]
mod stub;
mod written;

pub mod http;
pub mod jsonrpc;
pub mod stdio;
pub mod streams;

pub use self::access::{Pattern, Rights};
pub use self::caller::Caller;
pub use self::host::{Call, Client, Host, Options, Page, Place, View};
pub use self::revision::Revision;
pub use self::written::{definition_json, result_json};
