//! Repositories that a registry wants credentials for.

use url::Url;

use crate::registry_error::RegistryError;

/// What is to be done in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RepositoryAccess {
    Read,
    Write,
}

impl RepositoryAccess {
    /// Returns the word for messages.
    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    const fn actions(self) -> &'static str {
        match self {
            Self::Read => "pull",
            Self::Write => "pull,push",
        }
    }
}

/// A repository that a registry wants credentials for.
pub(crate) struct ProtectedRepository<'a> {
    /// The address that a person named.
    pub(crate) origin: &'a Url,
    /// The name of the registry.
    pub(crate) registry: &'a str,
    pub(crate) repository: &'a str,
    pub(crate) access: RepositoryAccess,
}

impl ProtectedRepository<'_> {
    /// Returns the error for credentials that are missing or refused.
    pub(crate) fn refusal(&self, has_credentials: bool, details: String) -> RegistryError {
        let registry = self.registry;
        let advice = if has_credentials {
            "those in Docker's config.json are wrong, or have expired".to_owned()
        } else {
            format!(
                "there are none for it in Docker's config.json; `docker login {registry}` or `oras login {registry}` adds them"
            )
        };
        RegistryError::Unauthorized {
            registry: registry.to_owned(),
            advice,
            details,
        }
    }

    /// Returns the right to ask a token service for: only what is to be done, whatever the registry
    /// names.
    pub(crate) fn scope(&self) -> String {
        format!("repository:{}:{}", self.repository, self.access.actions())
    }
}
