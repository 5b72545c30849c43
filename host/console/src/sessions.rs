//! The open sessions of the console: a bounded number, which expire.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::access::AccessProof;
use crate::operations::ConsoleViewer;
use crate::secret::{SecretHash, generate_secret, hash_secret};

/// Maximum number of sessions. A new session evicts the one that was idle longest.
const MAX_SESSIONS: usize = 16;

/// Idle timeout of a session. An open page polls for updates continually.
const IDLE_TIMEOUT: Duration = Duration::from_hours(1);

/// The sessions of a console.
#[derive(Debug)]
pub(crate) struct ConsoleSessions {
    /// Maximum duration of a session.
    max_age: Duration,
    sessions: Mutex<Vec<OpenSession>>,
}

#[derive(Debug)]
struct OpenSession {
    cookie: SecretHash,
    session: ConsoleSession,
    started_at: Instant,
    last_used: Instant,
}

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleSession {
    /// The viewer of the session.
    pub(crate) viewer: ConsoleViewer,
    /// The credential that opened the session.
    pub(crate) proof: AccessProof,
    /// The CSRF token that each form must contain.
    pub(crate) csrf: String,
    /// The calls that the viewer can answer now.
    pub(crate) open_approvals: OpenApprovals,
}

/// The calls that wait for an answer of a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenApprovals {
    /// Number of the calls.
    pub(crate) count: usize,
    /// Id of the newest call; 0 if there is none.
    pub(crate) newest: u64,
}

impl ConsoleSession {
    /// Returns the owner of its requests in the limits: the operator token, which can have several
    /// sessions, or the session itself if a login token opened it.
    pub(crate) fn permit_owner(&self) -> String {
        match self.proof {
            AccessProof::LoginToken => self.csrf.clone(),
            AccessProof::AdminToken(_) => self.viewer.name.clone(),
        }
    }
}

impl ConsoleSessions {
    /// Creates an empty set of sessions. A session ends after at most `max_age`.
    pub(crate) fn new(max_age: Duration) -> Self {
        Self {
            max_age,
            sessions: Mutex::default(),
        }
    }

    /// Returns the maximum duration of a session.
    pub(crate) fn max_age(&self) -> Duration {
        self.max_age
    }

    /// Starts a session. Returns the value of its cookie, or `None` if the system provides no
    /// random bytes.
    pub(crate) fn start(&self, viewer: ConsoleViewer, proof: AccessProof) -> Option<String> {
        let cookie = generate_secret()?;
        let csrf = generate_secret()?;
        let now = Instant::now();
        let mut sessions = self.lock_unexpired(now);
        if sessions.len() >= MAX_SESSIONS
            && let Some((longest_idle, _)) = sessions
                .iter()
                .enumerate()
                .min_by_key(|(_, one)| one.last_used)
        {
            sessions.swap_remove(longest_idle);
        }
        sessions.push(OpenSession {
            cookie: hash_secret(&cookie),
            session: ConsoleSession {
                viewer,
                proof,
                csrf,
                open_approvals: OpenApprovals::default(),
            },
            started_at: now,
            last_used: now,
        });
        Some(cookie)
    }

    /// Returns the session with this cookie; `None` if it has ended or never existed.
    pub(crate) fn find(&self, cookie: &str) -> Option<ConsoleSession> {
        let hash = hash_secret(cookie);
        let now = Instant::now();
        let mut sessions = self.lock_unexpired(now);
        let found = sessions.iter_mut().find(|one| one.cookie == hash)?;
        found.last_used = now;
        Some(found.session.clone())
    }

    /// Ends the session with this cookie.
    pub(crate) fn end(&self, cookie: &str) {
        let hash = hash_secret(cookie);
        self.lock_unexpired(Instant::now())
            .retain(|one| one.cookie != hash);
    }

    /// Removes expired sessions and returns the others. The lock is held for a few comparisons.
    fn lock_unexpired(&self, now: Instant) -> MutexGuard<'_, Vec<OpenSession>> {
        let mut sessions = self.sessions.lock();
        sessions.retain(|one| {
            now.duration_since(one.started_at) < self.max_age
                && now.duration_since(one.last_used) < IDLE_TIMEOUT
        });
        sessions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(name: &str) -> ConsoleViewer {
        ConsoleViewer {
            name: name.to_owned(),
            is_local: false,
        }
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = ConsoleSessions::new(Duration::from_mins(1));
        let ada = sessions
            .start(viewer("ada"), AccessProof::LoginToken)
            .unwrap();
        let bob = sessions
            .start(viewer("bob"), AccessProof::LoginToken)
            .unwrap();
        assert_eq!(sessions.find(&ada).unwrap().viewer.name, "ada");
        assert_ne!(
            sessions.find(&ada).unwrap().csrf,
            sessions.find(&bob).unwrap().csrf
        );
        assert!(sessions.find("").is_none() && sessions.find(&ada.to_lowercase()).is_none());
        sessions.end(&ada);
        assert!(sessions.find(&ada).is_none() && sessions.find(&bob).is_some());
        let short = ConsoleSessions::new(Duration::ZERO);
        assert!(
            short
                .find(&short.start(viewer("ada"), AccessProof::LoginToken).unwrap())
                .is_none()
        );
    }

    #[test]
    fn longest_idle_session_is_evicted() {
        let sessions = ConsoleSessions::new(Duration::from_mins(1));
        let cookies: Vec<String> = (0..MAX_SESSIONS)
            .map(|_| {
                sessions
                    .start(viewer("ada"), AccessProof::LoginToken)
                    .unwrap()
            })
            .collect();
        sessions.find(&cookies[0]).unwrap();
        sessions
            .start(viewer("bob"), AccessProof::LoginToken)
            .unwrap();
        assert!(sessions.find(&cookies[0]).is_some() && sessions.find(&cookies[1]).is_none());
        assert_eq!(sessions.sessions.lock().len(), MAX_SESSIONS);
    }
}
