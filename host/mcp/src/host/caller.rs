//! The identity of a caller.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolbay_model::CallerPreferences;

use crate::exchange::resource_subscriptions::MAX_URI_BYTES;
use crate::host::interface::ClientShare;
use crate::lists::access_rights::CallerRights;

/// The identity behind a request: its name, its rights and its share of the server's capacity.
///
/// It belongs to one request and never changes. Two requests of one session can have different
/// rights, because each request has its own token.
#[derive(Clone)]
pub struct Caller {
    /// Name for the log, such as `stdio`, `token:ci`, `oauth:ada of https://auth.example.com`,
    /// `ip:192.0.2.7` or `ip:2001:db8:0:1::/64`. Never a secret.
    pub name: String,
    /// The tools, prompts and resources that the caller may list and use.
    pub rights: CallerRights,
    /// The caller's queue, concurrency limit and rate limits.
    pub client: Arc<dyn ClientShare>,
    /// Preferences for the caller's models.
    pub preferences: CallerPreferences,
    /// Cancelled when the caller's authorization is withdrawn: its token or the key of its token is
    /// removed, the rights of its token change, or callers begin to need tokens. Calls that run or
    /// wait then end.
    pub revoked: CancellationToken,
}

impl Caller {
    /// The name of the caller of a stdio session.
    pub const LOCAL: &str = "stdio";

    /// Creates the caller of a stdio session, which may use everything.
    pub fn local(client: Arc<dyn ClientShare>) -> Self {
        Self {
            name: Self::LOCAL.to_owned(),
            rights: CallerRights::All,
            client,
            preferences: CallerPreferences::default(),
            revoked: CancellationToken::new(),
        }
    }

    /// Returns whether the name identifies one person or program, rather than every client at an
    /// address.
    pub(crate) fn is_identified(&self) -> bool {
        !self.name.starts_with("ip:")
    }

    /// Returns whether every caller has the same view as this one, so that one cached response can
    /// serve all callers. This is true if the caller may use everything without a token, because
    /// then no caller has fewer rights.
    pub(crate) fn has_public_view(&self) -> bool {
        matches!(self.rights, CallerRights::All) && !has_token(&self.name)
    }

    /// Returns whether the caller has a token of an authorization server, from which it can request
    /// another token.
    pub(crate) fn has_oauth_token(&self) -> bool {
        ["oauth:", "oauth-token:"]
            .iter()
            .any(|kind| self.name.starts_with(kind))
    }

    /// Returns whether the caller may use the target with this name or URI.
    pub fn may_use(&self, target: &str) -> bool {
        self.rights.allow(target)
    }

    /// Returns the URIs in `uris` that belong to a resource that the caller may read.
    pub(crate) async fn filter_readable(&self, uris: impl Iterator<Item = &String>) -> Vec<String> {
        let allowed: Vec<String> = uris
            .filter(|uri| uri.len() <= MAX_URI_BYTES && self.may_use(uri))
            .cloned()
            .collect();
        if allowed.is_empty() {
            allowed
        } else {
            self.client.existing_uris(allowed).await
        }
    }
}

/// Returns whether the caller with this name has a token. An unknown kind of name counts as the
/// name of a token.
fn has_token(name: &str) -> bool {
    name != Caller::LOCAL && !["ip:", "uid:"].iter().any(|kind| name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caller_except_addresses_and_accounts_has_a_token() {
        for name in [
            "token:ci",
            "oauth:ada of https://auth.example.com",
            "oauth-token:0123 of https://auth.example.com",
            "x",
        ] {
            assert!(has_token(name), "{name}");
        }
        for name in ["stdio", "ip:192.0.2.7", "ip:2001:db8:0:1::/64", "uid:1000"] {
            assert!(!has_token(name), "{name}");
        }
    }
}
