//! The secrets of one call.

use std::fmt;
use std::sync::Arc;

use http::Request;
use toolbay_policy::{Origin, OriginPattern};
use zeroize::Zeroizing;

use crate::credential::Credential;
use crate::secrets::Secrets;

/// The secrets of one call: to redact, and to add to its requests. They stay the same until it ends.
#[derive(Debug, Default)]
pub struct Opened {
    /// Those to redact.
    pub secrets: Arc<Secrets>,
    pub(crate) credentials: Vec<Credential>,
    /// Those that requests to these origins should carry, and that have no value.
    pub(crate) withheld: Vec<(Vec<OriginPattern>, Withheld)>,
}

/// Why a request cannot carry a secret, and is not sent. Each has the secret's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// It has no value.
    NoValue(String),
    /// Each caller has its own, and this one is not authenticated.
    NoCaller(String),
    /// Each caller has its own, and this one has none.
    NotForCaller(String),
    /// The value cannot be in a header.
    Unusable(String),
    /// The request's URL has no room for it.
    TooLong(String),
}

/// The end of a sentence about a request, without a path of the server.
impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue(name) => write!(f, "must carry the secret {name:?}, which has no value on this server"),
            Self::NoCaller(name) => {
                write!(f, "must carry the caller's own secret {name:?}, and the caller is not authenticated")
            }
            Self::NotForCaller(name) => {
                write!(f, "must carry the caller's own secret {name:?}, and this caller has none on this server")
            }
            Self::Unusable(name) => write!(f, "must carry the secret {name:?}, whose value cannot be in a header"),
            Self::TooLong(name) => write!(f, "must carry the secret {name:?}, for which its URL has no room"),
        }
    }
}

impl Opened {
    /// Adds the secrets that a request to `origin` carries. Returns what separates its connections from those of
    /// others; empty if it carries none.
    ///
    /// # Errors
    ///
    /// A secret that it should carry and cannot. The request must not be sent.
    pub fn add_to<B>(&self, request: &mut Request<B>, origin: &Origin) -> Result<Zeroizing<Vec<u8>>, Withheld> {
        let covers = |(origins, _): &&(Vec<OriginPattern>, Withheld)| origins.iter().any(|one| one.covers(origin));
        if let Some((_, why)) = self.withheld.iter().find(covers) {
            return Err(why.clone());
        }
        let mut key = Zeroizing::default();
        for credential in self.credentials.iter().filter(|credential| credential.is_for(origin)) {
            credential.add_to(request)?;
            credential.key(&mut key);
        }
        Ok(key)
    }
}
