//! Secret as specified by a grant.

use crate::credential::CredentialRule;
use crate::source::SecretSource;

/// Secret as specified by a grant, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSpec {
    /// Name of the secret in the grant.
    pub name: String,
    /// Source of the value.
    pub source: SecretSource,
    /// Rule for requests that carry the secret; `None` if it is only redacted.
    pub credential_rule: Option<CredentialRule>,
}

impl SecretSpec {
    /// Describes the consequence of a missing value.
    pub(crate) fn missing_value_effect(&self) -> &'static str {
        match self.credential_rule {
            Some(_) => "so requests to its origins are denied",
            None => "so there is nothing to redact",
        }
    }
}
