//! The secrets of one call.

use std::sync::Arc;

use http::Request;
use toolbay_policy::{OriginPattern, UrlOrigin};
use zeroize::Zeroizing;

use crate::credential::RequestCredential;
use crate::secrets::SecretFilter;
use crate::withheld::WithheldCredential;

/// The secrets of one call: to redact, and to add to its requests. They stay the same until it ends.
#[derive(Debug, Default)]
pub struct CallSecrets {
    /// Those to redact.
    pub secrets: Arc<SecretFilter>,
    pub(crate) credentials: Vec<RequestCredential>,
    /// Those that requests to these origins should carry, and that have no value.
    pub(crate) withheld: Vec<(Vec<OriginPattern>, WithheldCredential)>,
}

impl CallSecrets {
    /// Adds the secrets that a request to `origin` carries. Returns what separates its connections from those of
    /// others; empty if it carries none.
    ///
    /// # Errors
    ///
    /// A secret that it should carry and cannot. The request must not be sent.
    pub fn add_to<B>(
        &self,
        request: &mut Request<B>,
        origin: &UrlOrigin,
    ) -> Result<Zeroizing<Vec<u8>>, WithheldCredential> {
        let covers =
            |(origins, _): &&(Vec<OriginPattern>, WithheldCredential)| origins.iter().any(|one| one.covers(origin));
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
