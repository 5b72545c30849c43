//! Who may open the console.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::login_token::LoginToken;
use crate::operations::ConsoleViewer;
use crate::secret::{SecretHash, hash};

/// The name of whoever opened the console with the token of the log.
const LOCAL: &str = "console";

/// Who may open the console. Clones are the same, whichever is changed.
#[derive(Clone, Debug)]
pub struct ConsoleAccess(Arc<Mutex<AccessKind>>);

#[derive(Debug)]
enum AccessKind {
    /// Whoever can read the log of a server that this machine alone can reach.
    Local(Arc<LoginToken>),
    /// Whoever has the token of an operator.
    Admins(Vec<AdminToken>),
}

/// What somebody opened the console with. It has to be good for as long as they use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessProof {
    /// A token of the log, which works once.
    Log,
    /// The token of an operator with this SHA-256.
    Token(SecretHash),
}

/// The token of an operator.
#[derive(Clone, Debug)]
pub struct AdminToken {
    /// The name as a caller, such as `token:ops`.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: SecretHash,
}

impl ConsoleAccess {
    /// Whoever can read the log opens a console at this site, such as `http://127.0.0.1:8931`, with a token that works once.
    pub fn local(site: String) -> Self {
        Self::of(AccessKind::Local(Arc::new(LoginToken::new(Some(site)))))
    }

    /// Whoever gets a token that works once through the console's own socket opens it.
    pub fn socket() -> Self {
        Self::of(AccessKind::Local(Arc::new(LoginToken::new(None))))
    }

    /// A token that opens the console once, and takes the place of the one before; `None` if tokens are configured.
    pub(crate) fn issue(&self) -> Option<String> {
        self.login_token()?.issue()
    }

    /// Whoever has one of these tokens opens it.
    pub fn admins(admins: Vec<AdminToken>) -> Self {
        Self::of(AccessKind::Admins(admins))
    }

    fn of(kind: AccessKind) -> Self {
        Self(Arc::new(Mutex::new(kind)))
    }

    /// From now on, whoever has one of these tokens opens it, and nobody else. Sessions that were begun with another one
    /// have ended.
    pub fn change(&self, admins: Vec<AdminToken>) {
        *self.kind() = AccessKind::Admins(admins);
    }

    // Held for a few comparisons.
    fn kind(&self) -> MutexGuard<'_, AccessKind> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn login_token(&self) -> Option<Arc<LoginToken>> {
        match &*self.kind() {
            AccessKind::Local(token) => Some(Arc::clone(token)),
            AccessKind::Admins(_) => None,
        }
    }

    /// Says in the log how to open the console, if that is where it is said.
    pub(crate) fn announce(&self) {
        if let Some(token) = self.login_token() {
            token.announce();
        }
    }

    /// Whoever has this token; `None` if nobody has. A token that works once is used up, and the next one logged.
    pub(crate) fn viewer(&self, token: &str) -> Option<(ConsoleViewer, AccessProof)> {
        if let Some(local) = self.login_token() {
            let viewer = local.take(token).then(|| ConsoleViewer { name: LOCAL.to_owned(), local: true })?;
            local.announce();
            return Some((viewer, AccessProof::Log));
        }
        let (hash, kind) = (hash(token), self.kind());
        let AccessKind::Admins(admins) = &*kind else { return None };
        let admin = admins.iter().find(|admin| admin.sha256 == hash)?;
        Some((ConsoleViewer { name: admin.name.clone(), local: false }, AccessProof::Token(hash)))
    }

    /// Whether what this viewer opened it with still opens it.
    pub(crate) fn holds(&self, viewer: &ConsoleViewer, proof: AccessProof) -> bool {
        match (&*self.kind(), proof) {
            (AccessKind::Local(_), AccessProof::Log) => true,
            (AccessKind::Admins(admins), AccessProof::Token(hash)) => {
                admins.iter().any(|admin| admin.sha256 == hash && admin.name == viewer.name)
            }
            _ => false,
        }
    }

    /// Where somebody finds the token, as a sentence.
    pub(crate) fn advice(&self) -> &'static str {
        match &*self.kind() {
            AccessKind::Local(token) if !token.is_logged() => {
                "The command `toolbay console` prints an address that opens the console once. Open that address, or copy \
                 what follows its # here."
            }
            AccessKind::Local(_) => {
                "The server writes an address to its log that opens the console once. Open that address, or copy what \
                 follows its # here."
            }
            AccessKind::Admins(_) => "A token of http.tokens with admin = true opens the console.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin(name: &str, token: &str) -> AdminToken {
        AdminToken { name: name.to_owned(), sha256: hash(token) }
    }

    #[test]
    fn what_no_longer_opens_the_console_ends_what_was_begun_with_it() {
        let access = ConsoleAccess::admins(vec![admin("ada", "a"), admin("bob", "b")]);
        let (ada, proof) = access.viewer("a").unwrap();
        assert!(access.holds(&ada, proof) && !access.holds(&ada, AccessProof::Log) && access.viewer("c").is_none());
        // A clone is the same.
        access.clone().change(vec![admin("bob", "a"), admin("ada", "c")]);
        assert!(!access.holds(&ada, proof), "her token is another's now");
        access.change(vec![admin("ada", "a")]);
        assert!(access.holds(&ada, proof));
        access.change(Vec::new());
        assert!(!access.holds(&ada, proof) && access.viewer("a").is_none());
    }

    #[test]
    fn a_console_that_the_log_opened_closes_when_tokens_are_needed() {
        let access = ConsoleAccess::local("http://127.0.0.1:1".to_owned());
        let viewer = ConsoleViewer { name: LOCAL.to_owned(), local: true };
        assert!(access.holds(&viewer, AccessProof::Log));
        access.change(vec![admin("ada", "a")]);
        assert!(!access.holds(&viewer, AccessProof::Log));
        assert!(access.viewer("a").is_some());
    }
}
