//! Who may open the console.

use std::net::SocketAddr;

use crate::login_token::LoginToken;
use crate::operations::Viewer;
use crate::secret::{Hash, hash};

/// The name of whoever opened the console with the token of the log.
const LOCAL: &str = "console";

/// Who may open the console.
#[derive(Debug)]
pub struct Access(Kind);

#[derive(Debug)]
enum Kind {
    /// Whoever can read the log of a server that this machine alone can reach.
    Local(LoginToken),
    /// Whoever has the token of an operator.
    Admins(Vec<Admin>),
}

/// The token of an operator.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The name as a caller, such as `token:ops`.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: Hash,
}

impl Access {
    /// Whoever can read the log opens a console at this address, with a token that works once.
    pub fn local(address: SocketAddr) -> Self {
        Self(Kind::Local(LoginToken::new(address)))
    }

    /// Whoever has one of these tokens opens it.
    pub fn admins(admins: Vec<Admin>) -> Self {
        Self(Kind::Admins(admins))
    }

    /// Says in the log how to open the console, if that is where it is said.
    pub(crate) fn announce(&self) {
        if let Kind::Local(token) = &self.0 {
            token.announce();
        }
    }

    /// Whoever has this token; `None` if nobody has. A token that works once is used up, and the next one logged.
    pub(crate) fn viewer(&self, token: &str) -> Option<Viewer> {
        match &self.0 {
            Kind::Local(local) => {
                let viewer = local.take(token).then(|| Viewer { name: LOCAL.to_owned() })?;
                local.announce();
                Some(viewer)
            }
            Kind::Admins(admins) => {
                let hash = hash(token);
                let admin = admins.iter().find(|admin| admin.sha256 == hash)?;
                Some(Viewer { name: admin.name.clone() })
            }
        }
    }

    /// Where somebody finds the token, as a sentence.
    pub(crate) fn advice(&self) -> &'static str {
        match &self.0 {
            Kind::Local(_) => {
                "The server writes an address to its log that opens the console once. Open that address, or copy what \
                 follows its # here."
            }
            Kind::Admins(_) => "A token of http.tokens with admin = true opens the console.",
        }
    }
}
