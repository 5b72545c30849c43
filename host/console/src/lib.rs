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
//! The console never changes a grant or a permission. An operator can approve a version that the lock
//! file holds back.

mod access;
mod activity;
mod approval_requests;
mod approvals;
mod assets;
mod call_export;
mod call_filter;
mod call_history;
mod call_note;
mod call_series;
mod call_trail;
mod chart_history;
mod console;
mod denials;
mod form;
mod form_body;
mod formatting;
mod forwarded_connections;
mod forwarder;
mod history_file;
mod log_lines;
mod login_token;
mod operations;
mod page_context;
mod pages;
mod paths;
mod rejection_log;
mod request_checks;
mod request_permits;
mod responses;
mod running_calls;
mod search_query;
mod secret;
mod server_data;
mod sessions;
mod socket;
mod socket_protocol;

pub use axum::Router;

pub use self::access::{AdminToken, ConsoleAccess};
pub use self::activity::ServerActivity;
pub use self::approval_requests::{
    ApprovalHandler, ApprovalRequest, ApprovalResponse, WaitingCall, approval_handler,
    request_approvals,
};
pub use self::approvals::ApprovalNote;
pub use self::call_note::{CallNote, TextExcerpt};
pub use self::call_trail::CallTrail;
pub use self::console::{Console, RemoteAddress};
pub use self::denials::DenialNote;
pub use self::forwarder::{
    ConsoleLogin, describe_server, forward, list_running_calls, request_login, stop_running_call,
};
pub use self::history_file::HistoryFile;
pub use self::login_token::LOGIN_PATH_PREFIX;
pub use self::operations::{ConsoleOperations, ConsoleViewer};
pub use self::paths::PATH;
pub use self::running_calls::{CallProgress, RunningCall, RunningCallEntry, RunningCallTable};
pub use self::search_query::{SearchMatch, SearchQuery};
pub use self::server_data::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, GrantProposal, GrantText,
    HeldPlugin, LimitRow, LimitSource, OfferRow, PluginDetail, PluginFile, PluginRow, PluginStatus,
    PreviousGrant, ServerStatus, ToolDetail, ToolRow, ToolsPage, UsageRow, UsageSummary,
    VersionApproval, VersionApprovalOutcome, WaitingApproval,
};
pub use self::socket::{CallControl, OpenedConsole, serve};
