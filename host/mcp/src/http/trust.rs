//! What the trust in a caller rests on, for requests that outlive the moment in which they were checked.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::get_current_timestamp;
use jsonwebtoken::jwk::Jwk;
use tokio_util::sync::CancellationToken;

use super::keys::{IssuerKeys, READ};

/// What the trust in a caller rests on.
#[derive(Clone)]
pub(super) enum CallerTrust {
    /// On the configuration, until this is cancelled because it changed.
    Standing(CancellationToken),
    /// On a token.
    Token(TokenTrust),
}

/// What the trust in a token rests on.
#[derive(Clone)]
pub(super) struct TokenTrust {
    /// The keys of its issuer.
    pub issuer: Arc<IssuerKeys>,
    /// The one that verified it.
    pub key: Arc<Jwk>,
    /// From when it is rejected, in seconds since 1970.
    pub until: u64,
}

impl TokenTrust {
    /// Whether the token has not expired and its key has not been removed.
    pub(super) fn holds(&self) -> bool {
        self.until > get_current_timestamp() && self.issuer.contain(&self.key)
    }
}

impl CallerTrust {
    /// Waits until the token expires, its key is removed, or the configuration changed.
    pub(super) async fn lapse(&self) {
        let token = match self {
            Self::Standing(revoked) => return revoked.cancelled().await,
            Self::Token(token) => token,
        };
        while token.holds() {
            // In small steps, because the clock can be set.
            let left = Duration::from_secs(token.until.saturating_sub(get_current_timestamp()));
            tokio::time::sleep(left.clamp(Duration::from_millis(100), READ)).await;
        }
    }
}
