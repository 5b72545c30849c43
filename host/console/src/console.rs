//! The HTTP router of the console: request handlers for pages and forms.

mod console_state;
mod error_pages;
mod form_handlers;
mod login_handlers;
mod page_handlers;
mod request_guard;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::{get, post};

use self::console_state::ConsoleState;
pub use self::console_state::RemoteAddress;
use self::form_handlers::{
    answer_approval, approve_version, call_tool, clear_cache, set_plugin_suspended, stop_call,
};
use self::login_handlers::{log_in, log_out, login};
use self::page_handlers::{
    approvals, audit, call, calls, calls_csv, calls_json_lines, denied, held_version, log,
    overview, plugin, plugins, tool, tools, unknown_page, waiting,
};
use self::request_guard::limit_requests;
use crate::access::ConsoleAccess;
use crate::activity::ServerActivity;
use crate::assets::{NOTICES, SCRIPT, STYLE};
use crate::operations::ConsoleOperations;
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::rejection_log::FormRejections;
use crate::request_permits::RequestPermits;
use crate::responses::{see_other, with_security_headers};
use crate::sessions::ConsoleSessions;

/// Maximum time in which the body of a request must arrive. Forms are short.
const MAX_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The console of one server.
#[derive(Clone)]
pub struct Console(Arc<ConsoleState>);

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl Console {
    /// Creates the console of the server behind `operations`.
    ///
    /// `name` must be unique among the servers on this host, such as the port. A session ends after
    /// at most `max_session_age`. Each viewer, and each `remote_address` that sends requests
    /// without a session, has a limit of concurrent requests. The body of a request must arrive
    /// within `body_timeout`, at most 30 seconds.
    pub fn new(
        operations: Arc<dyn ConsoleOperations>,
        activity: Arc<ServerActivity>,
        access: ConsoleAccess,
        name: impl fmt::Display,
        max_session_age: Duration,
        remote_address: RemoteAddress,
        body_timeout: Duration,
    ) -> Self {
        let cookie_name = format!("toolbay_console_{name}");
        let context = PageContext {
            operations,
            activity,
        };
        Self(Arc::new(ConsoleState {
            context,
            access,
            sessions: ConsoleSessions::new(max_session_age),
            cookie_name,
            permits: RequestPermits::default(),
            login_permits: RequestPermits::default(),
            rejections: FormRejections::default(),
            remote_address,
            body_timeout: body_timeout.min(MAX_BODY_TIMEOUT),
        }))
    }

    /// Returns the router. The caller must check the `Host` of requests. Logs the address that
    /// opens the console, if login tokens are logged.
    pub fn router(self) -> Router {
        self.0.access.announce();
        let route = |path: &str| format!("{PATH}{path}");
        Router::new()
            .route("/", get(|| async { see_other(PATH) }))
            .route(PATH, get(overview))
            .route(&route("/"), get(|| async { see_other(PATH) }))
            .route(&route("/plugins"), get(plugins))
            .route(&route("/plugin"), get(plugin).post(set_plugin_suspended))
            .route(&route("/held"), get(held_version).post(approve_version))
            .route(&route("/tools"), get(tools))
            .route(&route("/tool"), get(tool).post(call_tool))
            .route(&route("/calls"), get(calls).post(stop_call))
            .route(&route("/call"), get(call))
            .route(&route("/calls.csv"), get(calls_csv))
            .route(&route("/calls.jsonl"), get(calls_json_lines))
            .route(&route("/denials"), get(denied))
            .route(&route("/approvals"), get(approvals))
            .route(&route("/approval"), post(answer_approval))
            .route(&route("/waiting"), get(waiting))
            .route(&route("/audit"), get(audit))
            .route(&route("/log"), get(log))
            .route(&route("/cache"), post(clear_cache))
            .route(&route("/login"), get(login).post(log_in))
            .route(&route("/logout"), post(log_out))
            .route(&route("/style.css"), get(|| async { STYLE.response() }))
            .route(&route("/script.js"), get(|| async { SCRIPT.response() }))
            .route(&route("/notices.js"), get(|| async { NOTICES.response() }))
            .route(&route("/{*path}"), get(unknown_page))
            .layer(from_fn_with_state(Arc::clone(&self.0), limit_requests))
            .layer(from_fn(|request: Request, next: Next| async {
                with_security_headers(next.run(request).await)
            }))
            .with_state(self.0)
    }
}

#[cfg(test)]
mod tests;
