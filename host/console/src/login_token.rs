//! The login token of a console without configured tokens. It works once. It is logged, or sent to
//! a client of the console's own socket.

use parking_lot::{Mutex, MutexGuard};

use crate::paths::PATH;
use crate::secret::{SecretHash, generate_secret, hash_secret};

/// Start of the path of a login address in the log. The console's log page omits lines with it.
pub const LOGIN_PATH_PREFIX: &str = "/console/login#";

/// A login token that works once. A new token can be issued after it is used.
#[derive(Debug)]
pub(crate) struct LoginToken {
    /// The base of login addresses, such as `http://127.0.0.1:8931`; `None` if addresses are not
    /// logged.
    site: Option<String>,
    current: Mutex<Option<SecretHash>>,
}

impl LoginToken {
    /// Creates a login token for a console at this site. It has no value before
    /// [`LoginToken::announce`] or [`LoginToken::issue`] is called.
    pub(crate) fn new(site: Option<String>) -> Self {
        Self {
            site,
            current: Mutex::default(),
        }
    }

    /// Returns whether login addresses are logged.
    pub(crate) fn is_logged(&self) -> bool {
        self.site.is_some()
    }

    /// Issues a token and logs its login address, if addresses are logged. The token is in the
    /// fragment of the URL, which browsers do not send.
    pub(crate) fn announce(&self) {
        let Some(site) = &self.site else { return };
        if let Some(token) = self.issue() {
            tracing::info!("the console opens once at {site}{PATH}/login#{token}");
        }
    }

    /// Issues a token, which replaces the previous one. Returns `None` if the system provides no
    /// random bytes.
    pub(crate) fn issue(&self) -> Option<String> {
        let token = generate_secret();
        let Some(value) = &token else {
            tracing::error!("the console cannot be opened: the system provides no random bytes");
            return None;
        };
        *self.lock_current() = Some(hash_secret(value));
        token
    }

    /// Returns whether `token` is the current token, and consumes it if so.
    pub(crate) fn consume(&self, token: &str) -> bool {
        let mut current = self.lock_current();
        let is_current = current.is_some_and(|current| current == hash_secret(token));
        if is_current {
            *current = None;
        }
        is_current
    }

    // The lock is held for a comparison.
    fn lock_current(&self) -> MutexGuard<'_, Option<SecretHash>> {
        self.current.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once() {
        let token = LoginToken::new(Some("http://127.0.0.1:8931".to_owned()));
        assert!(!token.consume(""), "there is none yet");
        *token.lock_current() = Some(hash_secret("a"));
        assert!(!token.consume("b"));
        assert!(token.consume("a"));
        assert!(!token.consume("a"));
        let first = token.issue().unwrap();
        let second = token.issue().unwrap();
        assert!(!token.consume(&first), "the newest one counts");
        assert!(token.consume(&second) && !token.consume(&second));
        assert_eq!(LOGIN_PATH_PREFIX, format!("{PATH}/login#"));
    }
}
