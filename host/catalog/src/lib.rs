//! Turns a folder of plugins into immutable snapshots of the tools that they offer.
//!
//! Data flows in one direction. The [`Watcher`] reports that something in the folder changed, the [`Reloader`] finds
//! out what, the [`Loader`] turns a file and the grant beside it into a [`Plugin`], and the reloader publishes a new
//! [`Snapshot`] through the [`Catalog`]. A published snapshot never changes. This crate does not know who calls a tool,
//! how often and with what result, and it does not know the protocol. Grants are files that only the operator writes;
//! this crate reads them.

mod assemble;
mod bounds;
mod catalog;
mod component;
mod definition;
mod fingerprint;
mod folder;
mod grant;
mod guard;
mod header;
mod load_error;
mod loader;
mod offer;
mod place;
mod plugin;
mod read;
mod reloader;
mod report;
mod rules;
mod snapshot;
mod terms;
mod watcher;

pub use self::assemble::{Candidate, assemble};
pub use self::bounds::Bounds;
pub use self::catalog::{Catalog, Publisher, Witness, channel};
pub use self::component::Component;
pub use self::definition::{Definition, check};
pub use self::grant::{Grant, Hints, Shown};
pub use self::guard::{Guarded, Places};
pub use self::load_error::{LoadError, describe_failed};
pub use self::loader::{Loaded, Loader, read_grant};
pub use self::offer::Offer;
pub use self::plugin::{Named, Plugin};
pub use self::read::read_source;
pub use self::reloader::Reloader;
pub use self::report::{Different, Granted, MadeFrom, PluginReport, Status};
pub use self::rules::Rules;
pub use self::snapshot::Snapshot;
pub use self::terms::{Terms, ToolTerms};
pub use self::watcher::{Changes, Watcher};
