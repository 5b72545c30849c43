//! The secrets of one call.

use std::sync::Arc;

use http::Request;
use toolbay_policy::{Origin, OriginPattern};
use zeroize::Zeroizing;

use crate::credential::Credential;
use crate::secrets::Secrets;
use crate::withheld::Withheld;

/// The secrets of one call: to redact, and to add to its requests. They stay the same until it ends.
#[derive(Debug, Default)]
pub struct Opened {
    /// Those to redact.
    pub secrets: Arc<Secrets>,
    pub(crate) credentials: Vec<Credential>,
    /// Those that requests to these origins should carry, and that have no value.
    pub(crate) withheld: Vec<(Vec<OriginPattern>, Withheld)>,
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
