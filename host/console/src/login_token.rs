//! The token that opens a console without configured tokens: it is in the log, or given to whoever asks through the console's
//! own socket, and works once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::paths::PATH;
use crate::secret::{SecretHash, hash, secret};

/// What the address of a login begins with in the log. Lines with it are not among the log's lines in the console.
pub const LOGIN: &str = "/console/login#";

/// A token that works once. The next one takes its place when it has been used.
#[derive(Debug)]
pub(crate) struct LoginToken {
    /// What the addresses begin with, such as `http://127.0.0.1:8931`; `None` if no address is logged.
    site: Option<String>,
    current: Mutex<Option<SecretHash>>,
}

impl LoginToken {
    /// The tokens of a console at this site. There is none before [`LoginToken::announce`] or [`LoginToken::issue`].
    pub(crate) fn new(site: Option<String>) -> Self {
        Self { site, current: Mutex::default() }
    }

    /// Whether addresses are logged.
    pub(crate) fn is_logged(&self) -> bool {
        self.site.is_some()
    }

    /// Makes a token and logs the address that it opens, if addresses are logged. The token is after the `#`: browsers send
    /// that to nobody.
    pub(crate) fn announce(&self) {
        let Some(site) = &self.site else { return };
        if let Some(token) = self.issue() {
            tracing::info!("the console opens once at {site}{PATH}/login#{token}");
        }
    }

    /// Makes a token, which takes the place of the one before; `None` if the system has no random bytes.
    pub(crate) fn issue(&self) -> Option<String> {
        let token = secret();
        let Some(made) = &token else {
            tracing::error!("the console cannot be opened: the system provides no random bytes");
            return None;
        };
        *self.current() = Some(hash(made));
        token
    }

    /// Whether this is the token. It is used up then.
    pub(crate) fn take(&self, token: &str) -> bool {
        let mut current = self.current();
        let is_it = current.is_some_and(|current| current == hash(token));
        if is_it {
            *current = None;
        }
        is_it
    }

    // Held for a comparison.
    fn current(&self) -> MutexGuard<'_, Option<SecretHash>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_once() {
        let token = LoginToken::new(Some("http://127.0.0.1:8931".to_owned()));
        assert!(!token.take(""), "there is none yet");
        *token.current() = Some(hash("a"));
        assert!(!token.take("b"));
        assert!(token.take("a"));
        assert!(!token.take("a"));
        let (first, second) = (token.issue().unwrap(), token.issue().unwrap());
        assert!(!token.take(&first), "the newest one counts");
        assert!(token.take(&second) && !token.take(&second));
        assert_eq!(LOGIN, format!("{PATH}/login#"));
    }
}
