//! The state that all requests of a console share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use http::Extensions;

use crate::access::ConsoleAccess;
use crate::page_context::PageContext;
use crate::rejection_log::FormRejections;
use crate::request_permits::RequestPermits;
use crate::sessions::{ConsoleSession, ConsoleSessions, OpenApprovals};

/// Function that returns the remote address of a request, as determined by the HTTP server.
pub type RemoteAddress = fn(&Extensions) -> Option<String>;

/// The state of the console of one server.
pub(super) struct ConsoleState {
    pub(super) context: PageContext,
    pub(super) access: ConsoleAccess,
    pub(super) sessions: ConsoleSessions,
    /// Name of the session cookie. It differs between servers on one host, because browsers send
    /// cookies to all ports.
    pub(super) cookie_name: String,
    /// Permits for requests with a session, with a limit for each viewer.
    pub(super) permits: RequestPermits,
    /// Permits for requests without a session, with a limit for each address. They are separate, so
    /// that such requests cannot block viewers with a session.
    pub(super) login_permits: RequestPermits,
    /// The rejected forms, for the log.
    pub(super) rejections: FormRejections,
    /// Function that returns the origin of a request.
    pub(super) remote_address: RemoteAddress,
    /// Time in which the body of a request must arrive.
    pub(super) body_timeout: Duration,
}

impl ConsoleState {
    /// Returns the session with this cookie if its credential is still valid. Ends the session
    /// otherwise.
    pub(super) fn session(&self, cookie: &str) -> Option<ConsoleSession> {
        let session = self
            .sessions
            .find(cookie)
            .filter(|session| self.access.is_valid(&session.viewer, session.proof));
        if session.is_none() {
            self.sessions.end(cookie);
        }
        session
    }

    /// Returns the session with the calls that its viewer can answer now.
    pub(super) fn with_open_approvals(&self, mut session: ConsoleSession) -> ConsoleSession {
        let operations = &self.context.operations;
        let waiting = operations.waiting_approvals();
        let open = waiting
            .iter()
            .filter(|one| operations.may_use(&session.viewer, &one.tool));
        session.open_approvals = open.fold(OpenApprovals::default(), |so_far, one| OpenApprovals {
            count: so_far.count + 1,
            newest: so_far.newest.max(one.id),
        });
        session
    }
}

/// The state, as a parameter of handlers.
pub(super) type SharedConsole = State<Arc<ConsoleState>>;
