//! Who has opened the console: a bounded number of sessions that end by themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::access::AccessProof;
use crate::operations::ConsoleViewer;
use crate::secret::{SecretHash, hash, secret};

/// Most sessions. A new one takes the place of the one that was idle longest.
const MOST: usize = 16;

/// How long a session is kept without a request. An open page asks for news all the time.
const IDLE: Duration = Duration::from_hours(1);

/// The sessions of a console.
#[derive(Debug)]
pub(crate) struct ConsoleSessions {
    /// The longest time until one ends.
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
    /// Whose it is.
    pub(crate) viewer: ConsoleViewer,
    /// What it was opened with.
    pub(crate) proof: AccessProof,
    /// What each form must contain.
    pub(crate) csrf: String,
}

impl ConsoleSessions {
    /// No session. One that begins ends after `life` at the latest.
    pub(crate) fn new(life: Duration) -> Self {
        Self { life, open: Mutex::default() }
    }

    /// The longest time until a session ends.
    pub(crate) fn life(&self) -> Duration {
        self.life
    }

    /// Begins a session; the value of its cookie, or `None` if the system has no random bytes.
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

    /// The session with this cookie; `None` if it has ended or never was.
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

    /// Those that have not ended. The lock is held for a few comparisons.
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
