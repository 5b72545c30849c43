//! Evidence that a caller is still authorized, for requests that outlive their authentication.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::get_current_timestamp;
use tokio_util::sync::CancellationToken;

use super::issuer_keys::{IssuerKeys, KEY_READ_INTERVAL, SigningKey};

/// Evidence that a caller is authorized.
#[derive(Clone)]
pub(super) enum CredentialValidity {
    /// The configuration, until a change cancels this token.
    Configured(CancellationToken),
    /// A bearer token.
    Token(TokenValidity),
}

/// Evidence that a token is valid.
#[derive(Clone)]
pub(super) struct TokenValidity {
    /// The issuer's keys.
    pub issuer: Arc<IssuerKeys>,
    /// The key that verified the token.
    pub key: Arc<SigningKey>,
    /// Expiry time, in seconds since 1970.
    pub until: u64,
}

impl TokenValidity {
    /// Returns whether the token has not expired and its key has not been removed.
    pub(super) fn is_valid(&self) -> bool {
        self.until > get_current_timestamp() && self.issuer.contains(&self.key)
    }
}

impl CredentialValidity {
    /// Returns whether the caller is still authorized.
    pub(super) fn is_valid(&self) -> bool {
        match self {
            Self::Configured(revoked) => !revoked.is_cancelled(),
            Self::Token(token) => token.is_valid(),
        }
    }

    /// Waits until the token expires, its key is removed, or the configuration changes.
    pub(super) async fn wait_until_invalid(&self) {
        let token = match self {
            Self::Configured(revoked) => return revoked.cancelled().await,
            Self::Token(token) => token,
        };
        while token.is_valid() {
            // Waits in small steps, because the clock can be set.
            let left = Duration::from_secs(token.until.saturating_sub(get_current_timestamp()));
            tokio::time::sleep(left.clamp(Duration::from_millis(100), KEY_READ_INTERVAL)).await;
        }
    }
}
