//! Secrets of one call.

use std::sync::Arc;

use http::Request;
use toolbay_policy::{OriginPattern, UrlOrigin};
use zeroize::Zeroizing;

use crate::credential::RequestCredential;
use crate::secrets::SecretFilter;
use crate::withheld_credential::WithheldCredential;

/// Secrets of one call, for redaction and for its requests. They do not change during the call.
#[derive(Debug, Default)]
pub struct CallSecrets {
    /// Secrets to redact.
    pub filter: Arc<SecretFilter>,
    pub(crate) credentials: Vec<RequestCredential>,
    /// Origins whose requests require a secret without a value, and the reason that it has none.
    pub(crate) withheld: Vec<(Vec<OriginPattern>, WithheldCredential)>,
}

impl CallSecrets {
    /// Adds the secrets that a request to `origin` carries. Returns the key that separates its
    /// connections from others; empty if the request carries no secret.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot carry a required secret. The request must then not be
    /// sent.
    pub fn add_to<B>(
        &self,
        request: &mut Request<B>,
        origin: &UrlOrigin,
    ) -> Result<Zeroizing<Vec<u8>>, WithheldCredential> {
        let covers = |(origins, _): &&(Vec<OriginPattern>, WithheldCredential)| {
            origins.iter().any(|one| one.covers(origin))
        };
        if let Some((_, why)) = self.withheld.iter().find(covers) {
            return Err(why.clone());
        }
        let mut key = Zeroizing::default();
        for credential in self
            .credentials
            .iter()
            .filter(|credential| credential.is_for(origin))
        {
            credential.add_to(request)?;
            credential.append_pool_key(&mut key);
        }
        Ok(key)
    }
}
