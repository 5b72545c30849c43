//! A secret as a grant names it.

use crate::credential::CredentialRule;
use crate::source::SecretSource;

/// A secret as a grant names it, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSpec {
    /// Its name in the grant.
    pub name: String,
    /// Where its value comes from.
    pub source: SecretSource,
    /// Which requests carry it; `None` if it is only redacted.
    pub carried: Option<CredentialRule>,
}

impl SecretSpec {
    /// What is lost without a value.
    pub(crate) fn lost(&self) -> &'static str {
        match self.carried {
            Some(_) => "so requests to its origins are denied",
            None => "so there is nothing to redact",
        }
    }
}
