//! The Model Context Protocol: JSON-RPC, revisions, standard streams and HTTP.
//!
//! A transport ([`stdio`], [`http`]) turns bytes into messages (`jsonrpc`), finds the `session` to which each belongs,
//! and passes it to `dispatch`. This module finds the `method`, determines the `rules` that apply, and calls the
//! method's file in `methods`. `shape` and `outcome` write the response for the revision, and `outbox` queues it. The
//! content of responses comes from a [`Host`], a trait that this crate defines. Nothing here knows wasmtime, the plugin
//! folder or the configuration file, and no other crate knows the differences between revisions.
//!
//! To add a transport, add a module beside the two; to add a method, a file and a row in `method`; to add a revision, a
//! row in `revision`.

mod access;
mod caller;
mod capabilities;
mod changes;
mod cursor;
mod dispatch;
mod host;
mod in_flight;
mod known;
mod listings;
mod method;
mod methods;
mod observer;
mod outbox;
mod outcome;
mod params;
mod quota;
mod revision;
mod rules;
mod session;
mod shape;
#[cfg(test)]
mod stub;
mod view;
mod weight;
mod written;

pub mod http;
pub mod jsonrpc;
pub mod stdio;
pub mod streams;

pub use self::access::{Pattern, Rights};
pub use self::caller::Caller;
pub use self::capabilities::Capabilities;
pub use self::host::{Call, Client, Host, Options, Page, Place};
pub use self::listings::Listings;
pub use self::quota::{Exhausted, Portion, Quota};
pub use self::revision::Revision;
pub use self::view::View;
pub use self::written::{definition_json, result_json};
