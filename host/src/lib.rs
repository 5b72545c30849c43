//! An MCP server whose tools are WebAssembly components.
//!
//! The library behind the `toolbay` binary, in the order in which a call passes through it:
//!
//! - [`cli`] reads the command line, [`config`] merges what the operator says.
//! - [`mcp`] speaks the protocol; it alone knows JSON-RPC and revisions.
//! - [`service`] takes a call from its name to its checked result, by way of [`access`] and [`admission`].
//! - [`catalog`] is what is offered at one moment: pure data.
//! - [`plugin`] loads what is in the folder and publishes to the catalog.
//! - [`sandbox`] runs guests; it alone knows wasmtime.
//!
//! [`limits`], [`definition`], [`content`], [`schema`], [`secret`], [`text`] and [`trace`] are the words they share.

pub mod access;
pub mod admission;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod content;
pub mod definition;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
pub mod limits;
pub mod mcp;
pub mod plugin;
pub mod project;
pub mod rate;
pub mod sandbox;
pub mod schema;
pub mod secret;
pub mod service;
pub mod tally;
pub mod telemetry;
pub mod text;
mod toml_file;
pub mod trace;
