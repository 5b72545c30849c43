//! The console: pages for operators that show what a server offers, what happens, and why something failed.
//!
//! Data comes from two places. [`ServerActivity`] takes in what happens (calls, denied uses, approvals, log lines) and keeps the
//! newest of it within bounds. [`ConsoleOperations`] is a trait that the server implements: it says what is offered, and does the
//! few things that an operator may do here. `access` decides who may open the console, `sessions` who has, and `guard`
//! which requests count as theirs. `pages/` writes HTML with maud, which escapes every value; `form` makes a form out of a
//! JSON Schema, and reads it. Nothing here knows wasmtime, the plugin folder, the configuration file or MCP.
//!
//! What it never does: change a grant or a permission.

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
