//! The console: web pages for operators that show the plugins and tools of a server, its activity,
//! and the reasons of failures.
//!
//! Data has two sources. [`ServerActivity`] records events (calls, denials, approvals, log lines)
//! and retains the newest ones within bounds. [`ConsoleOperations`] is a trait that the server
//! implements: it describes the offered items and performs the few actions that an operator may
//! take. `access` checks credentials, and `sessions` stores the open sessions. Requests are checked
//! against cross-site request forgery. `pages/` renders HTML with maud, which escapes every value.
//! `form` generates a form from a JSON Schema and parses it. This crate does not depend on
//! wasmtime, the plugin folder, the configuration file or MCP.
//!
//! The console never changes a grant or a permission.

mod access;
mod answer;
mod approvals;
mod assets;
mod calls;
mod connections;
mod console;
mod data;
mod denials;
mod desk;
mod door;
mod form;
mod forwarder;
mod guard;
mod history;
mod log_lines;
mod login_token;
mod neighbor;
mod operations;
mod pages;
mod paths;
mod posted;
mod secret;
mod series;
mod sessions;
mod shown;
mod socket;
mod watch;
mod word;

pub use axum::Router;

pub use self::access::{AdminToken, ConsoleAccess};
pub use self::approvals::ApprovalNote;
pub use self::calls::{CallNote, TextExcerpt};
pub use self::console::{Console, RemoteAddress};
pub use self::data::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, PluginDetail, PluginRow, PluginStatus, ServerStatus,
    ToolDetail, ToolRow, ToolsPage, WaitingApproval,
};
pub use self::denials::DenialNote;
pub use self::forwarder::{ConsoleLogin, about, forward, login};
pub use self::login_token::LOGIN;
pub use self::operations::{ConsoleOperations, ConsoleViewer};
pub use self::paths::PATH;
pub use self::socket::{OpenedConsole, serve};
pub use self::watch::ServerActivity;
