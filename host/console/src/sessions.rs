//! The open sessions of the console: a bounded number, which expire.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::access::AccessProof;
use crate::operations::ConsoleViewer;
use crate::secret::{SecretHash, hash, secret};

/// Maximum number of sessions. A new session evicts the one that was idle longest.
const MOST: usize = 16;

/// Idle timeout of a session. An open page polls for updates continually.
const IDLE: Duration = Duration::from_hours(1);

/// The sessions of a console.
#[derive(Debug)]
pub(crate) struct ConsoleSessions {
    /// Maximum duration of a session.
    life: Duration,
    open: Mutex<Vec<OpenSession>>,
}

#[derive(Debug)]
struct OpenSession {
    cookie: SecretHash,
    session: ConsoleSession,
    began: Instant,
    used: Instant,
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
}

impl ConsoleSessions {
    /// Creates an empty set of sessions. A session ends after at most `life`.
    pub(crate) fn new(life: Duration) -> Self {
        Self { life, open: Mutex::default() }
    }

    /// Returns the maximum duration of a session.
    pub(crate) fn life(&self) -> Duration {
        self.life
    }

    /// Starts a session. Returns the value of its cookie, or `None` if the system provides no
    /// random bytes.
    pub(crate) fn begin(&self, viewer: ConsoleViewer, proof: AccessProof) -> Option<String> {
        let (cookie, csrf, now) = (secret()?, secret()?, Instant::now());
        let mut open = self.living(now);
        if open.len() >= MOST
            && let Some((idlest, _)) = open.iter().enumerate().min_by_key(|(_, one)| one.used)
        {
            open.swap_remove(idlest);
        }
        open.push(OpenSession {
            cookie: hash(&cookie),
            session: ConsoleSession { viewer, proof, csrf },
            began: now,
            used: now,
        });
        Some(cookie)
    }

    /// Returns the session with this cookie; `None` if it has ended or never existed.
    pub(crate) fn of(&self, cookie: &str) -> Option<ConsoleSession> {
        let (hash, now) = (hash(cookie), Instant::now());
        let mut open = self.living(now);
        let one = open.iter_mut().find(|one| one.cookie == hash)?;
        one.used = now;
        Some(one.session.clone())
    }

    /// Ends the session with this cookie.
    pub(crate) fn end(&self, cookie: &str) {
        let hash = hash(cookie);
        self.living(Instant::now()).retain(|one| one.cookie != hash);
    }

    /// Removes expired sessions and returns the others. The lock is held for a few comparisons.
    fn living(&self, now: Instant) -> MutexGuard<'_, Vec<OpenSession>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| now.duration_since(one.began) < self.life && now.duration_since(one.used) < IDLE);
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(name: &str) -> ConsoleViewer {
        ConsoleViewer { name: name.to_owned(), local: false }
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = ConsoleSessions::new(Duration::from_mins(1));
        let (ada, bob) = (
            sessions.begin(viewer("ada"), AccessProof::Log).unwrap(),
            sessions.begin(viewer("bob"), AccessProof::Log).unwrap(),
        );
        assert_eq!(sessions.of(&ada).unwrap().viewer.name, "ada");
        assert_ne!(sessions.of(&ada).unwrap().csrf, sessions.of(&bob).unwrap().csrf);
        assert!(sessions.of("").is_none() && sessions.of(&ada.to_lowercase()).is_none());
        sessions.end(&ada);
        assert!(sessions.of(&ada).is_none() && sessions.of(&bob).is_some());
        let short = ConsoleSessions::new(Duration::ZERO);
        assert!(short.of(&short.begin(viewer("ada"), AccessProof::Log).unwrap()).is_none());
    }

    #[test]
    fn there_are_so_many_and_the_one_that_was_idle_longest_makes_room() {
        let sessions = ConsoleSessions::new(Duration::from_mins(1));
        let cookies: Vec<String> =
            (0..MOST).map(|_| sessions.begin(viewer("ada"), AccessProof::Log).unwrap()).collect();
        sessions.of(&cookies[0]).unwrap();
        sessions.begin(viewer("bob"), AccessProof::Log).unwrap();
        assert!(sessions.of(&cookies[0]).is_some() && sessions.of(&cookies[1]).is_none());
        assert_eq!(sessions.open.lock().unwrap().len(), MOST);
    }
}
