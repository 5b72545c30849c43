//! Access control of the console.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::login_token::LoginToken;
use crate::operations::ConsoleViewer;
use crate::secret::{SecretHash, hash_secret};

/// Name of the viewer who opened the console with a login token.
const LOCAL_VIEWER_NAME: &str = "console";

/// The credentials that open the console. Clones share their state.
#[derive(Clone, Debug)]
pub struct ConsoleAccess(Arc<Mutex<AccessKind>>);

#[derive(Debug)]
enum AccessKind {
    /// A login token that works once, for a server that only this machine can reach.
    Local(Arc<LoginToken>),
    /// The tokens of operators, and those of other callers.
    Admins {
        admins: Vec<AdminToken>,
        others: Vec<AdminToken>,
    },
}

/// The result of a login.
#[derive(Debug)]
pub(crate) enum LoginOutcome {
    /// The token opens the console for this viewer.
    Admitted(ConsoleViewer, AccessProof),
    /// The token is valid, but belongs to a caller with this name, who is not an operator.
    NotOperator(String),
    /// The token is invalid.
    Invalid,
}

/// The credential that opened a session. The session ends when the credential becomes invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessProof {
    /// A login token, which works once.
    LoginToken,
    /// The token of an operator with this SHA-256.
    AdminToken(SecretHash),
}

/// The token of an operator, or of another caller.
#[derive(Clone, Debug)]
pub struct AdminToken {
    /// The name as a caller, such as `token:ops`.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: SecretHash,
}

impl ConsoleAccess {
    /// Creates access for users who can read the log, which contains a login address at this
    /// `site`, such as `http://127.0.0.1:8931`. The token in the address works once.
    pub fn local(site: String) -> Self {
        Self::from_kind(AccessKind::Local(Arc::new(LoginToken::new(Some(site)))))
    }

    /// Creates access for users who request a login token through the console's own socket. The
    /// token works once.
    pub fn socket() -> Self {
        Self::from_kind(AccessKind::Local(Arc::new(LoginToken::new(None))))
    }

    /// Issues a new login token, which replaces the previous one. Returns `None` if operator tokens
    /// are configured.
    pub(crate) fn issue(&self) -> Option<String> {
        self.login_token()?.issue()
    }

    /// Creates access for the operators with these tokens. The tokens of `others` do not open the
    /// console; a login with one states this.
    pub fn admins(admins: Vec<AdminToken>, others: Vec<AdminToken>) -> Self {
        Self::from_kind(AccessKind::Admins { admins, others })
    }

    fn from_kind(kind: AccessKind) -> Self {
        Self(Arc::new(Mutex::new(kind)))
    }

    /// Replaces the tokens. Sessions that were opened with a removed token end.
    pub fn set_admins(&self, admins: Vec<AdminToken>, others: Vec<AdminToken>) {
        *self.lock_kind() = AccessKind::Admins { admins, others };
    }

    // The lock is held for a few comparisons.
    fn lock_kind(&self) -> MutexGuard<'_, AccessKind> {
        self.0.lock()
    }

    /// Returns whether a login token opens the console, which the console's own socket issues.
    pub(crate) fn is_local(&self) -> bool {
        self.login_token().is_some()
    }

    fn login_token(&self) -> Option<Arc<LoginToken>> {
        match &*self.lock_kind() {
            AccessKind::Local(token) => Some(Arc::clone(token)),
            AccessKind::Admins { .. } => None,
        }
    }

    /// Logs the address that opens the console, if login tokens are logged.
    pub(crate) fn announce(&self) {
        if let Some(token) = self.login_token() {
            token.announce();
        }
    }

    /// Returns the viewer with this token and the proof of access. Consumes a login token and logs
    /// the next one.
    pub(crate) fn authenticate(&self, token: &str) -> LoginOutcome {
        if let Some(local) = self.login_token() {
            if !local.consume(token) {
                return LoginOutcome::Invalid;
            }
            let viewer = ConsoleViewer {
                name: LOCAL_VIEWER_NAME.to_owned(),
                is_local: true,
            };
            local.announce();
            return LoginOutcome::Admitted(viewer, AccessProof::LoginToken);
        }
        let hash = hash_secret(token);
        let kind = self.lock_kind();
        let AccessKind::Admins { admins, others } = &*kind else {
            return LoginOutcome::Invalid;
        };
        let find = |tokens: &[AdminToken]| {
            let found = tokens.iter().find(|known| known.sha256 == hash);
            found.map(|known| known.name.clone())
        };
        if let Some(name) = find(admins) {
            let viewer = ConsoleViewer {
                name,
                is_local: false,
            };
            return LoginOutcome::Admitted(viewer, AccessProof::AdminToken(hash));
        }
        find(others).map_or(LoginOutcome::Invalid, LoginOutcome::NotOperator)
    }

    /// Returns whether the credential of this viewer is still valid.
    pub(crate) fn is_valid(&self, viewer: &ConsoleViewer, proof: AccessProof) -> bool {
        match (&*self.lock_kind(), proof) {
            (AccessKind::Local(_), AccessProof::LoginToken) => true,
            (AccessKind::Admins { admins, .. }, AccessProof::AdminToken(hash)) => admins
                .iter()
                .any(|admin| admin.sha256 == hash && admin.name == viewer.name),
            _ => false,
        }
    }

    /// Returns a sentence that explains where to find a token.
    pub(crate) fn token_advice(&self) -> &'static str {
        match &*self.lock_kind() {
            AccessKind::Local(token) if !token.is_logged() => {
                "The command `toolbay console` prints an address that opens the console once. Open that address, or \
                 copy the part after its # here."
            }
            AccessKind::Local(_) => {
                "The server writes an address to its log that opens the console once. Open that address, or copy \
                 the part after its # here."
            }
            AccessKind::Admins { .. } => {
                "A token of http.tokens with admin = true opens the console."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin(name: &str, token: &str) -> AdminToken {
        AdminToken {
            name: name.to_owned(),
            sha256: hash_secret(token),
        }
    }

    /// Logs in. Returns the viewer with the proof of access, if the token opens the console.
    fn enter(access: &ConsoleAccess, token: &str) -> Option<(ConsoleViewer, AccessProof)> {
        match access.authenticate(token) {
            LoginOutcome::Admitted(viewer, proof) => Some((viewer, proof)),
            LoginOutcome::NotOperator(_) | LoginOutcome::Invalid => None,
        }
    }

    #[test]
    fn removed_credential_ends_its_sessions() {
        let access = ConsoleAccess::admins(vec![admin("ada", "a"), admin("bob", "b")], Vec::new());
        let (ada, proof) = enter(&access, "a").unwrap();
        assert!(
            access.is_valid(&ada, proof)
                && !access.is_valid(&ada, AccessProof::LoginToken)
                && enter(&access, "c").is_none()
        );
        // Clones share their state.
        access
            .clone()
            .set_admins(vec![admin("bob", "a"), admin("ada", "c")], Vec::new());
        assert!(!access.is_valid(&ada, proof), "her token is another's now");
        access.set_admins(vec![admin("ada", "a")], Vec::new());
        assert!(access.is_valid(&ada, proof));
        access.set_admins(Vec::new(), vec![admin("ada", "a")]);
        assert!(!access.is_valid(&ada, proof) && enter(&access, "a").is_none());
    }

    #[test]
    fn a_valid_token_without_the_right_is_distinguished_from_a_wrong_one() {
        let access = ConsoleAccess::admins(vec![admin("ada", "a")], vec![admin("ci", "c")]);
        assert!(matches!(
            access.authenticate("c"),
            LoginOutcome::NotOperator(name) if name == "ci"
        ));
        assert!(matches!(access.authenticate("d"), LoginOutcome::Invalid));
        let local = ConsoleAccess::local("http://127.0.0.1:1".to_owned());
        assert!(matches!(local.authenticate(""), LoginOutcome::Invalid));
    }

    #[test]
    fn sessions_of_login_tokens_end_when_operator_tokens_are_set() {
        let access = ConsoleAccess::local("http://127.0.0.1:1".to_owned());
        let viewer = ConsoleViewer {
            name: LOCAL_VIEWER_NAME.to_owned(),
            is_local: true,
        };
        assert!(access.is_valid(&viewer, AccessProof::LoginToken));
        access.set_admins(vec![admin("ada", "a")], Vec::new());
        assert!(!access.is_valid(&viewer, AccessProof::LoginToken));
        assert!(enter(&access, "a").is_some());
    }
}
