//! Authentication: bearer tokens, or anonymous callers if the configuration allows them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolbay_model::CallerPreferences;

use super::address::ListenAddress;
use super::auth_denial::{AuthDenial, token_hash};
use super::credential_validity::CredentialValidity;
use super::oauth::{TokenVerifier, VerifiedToken};
use super::options::{BearerToken, HttpOptions};
use super::peer::PeerSource;
use crate::host::caller::Caller;
use crate::host::interface::{CallHost, ClientShare};
use crate::lists::access_rights::CallerRights;

/// Time for which the share of an idle caller is retained, and with it the state of its rate limit.
const SHARE_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Number of shares above which the shares of idle callers are dropped. Callers with a session or a
/// request count too, but their number has separate limits.
const MAX_SHARES: usize = 1024;

/// Authenticates callers.
pub(super) struct AuthGate {
    tokens: ArcSwap<TokenTable>,
    oauth: Option<TokenVerifier>,
    /// If set, other machines can reach the server.
    is_reachable_remotely: bool,
    /// If set, host names are configured (`http.allowed_hosts`). In that case a proxy on this
    /// machine may forward requests of other machines.
    has_host_names: AtomicBool,
    /// If set, a proxy forwards requests of other machines (`http.trusted_proxies`).
    has_proxies: bool,
    shares: Mutex<HashMap<String, CallerShare>>,
}

/// The configured tokens, which can change at runtime.
struct TokenTable {
    tokens: HashMap<[u8; 32], ListedToken>,
    /// If set, callers need no token.
    allows_anonymous: bool,
    /// Cancelled when tokens become required.
    anonymous_revoked: CancellationToken,
}

/// A configured token.
struct ListedToken {
    token: BearerToken,
    caller: Arc<Caller>,
}

impl TokenTable {
    /// Creates the table of these tokens. Tokens that are also in `before` keep their rate limit
    /// state. `has_oauth` is set if OAuth tokens are accepted, so that callers need a token even if
    /// `tokens` is empty.
    fn new(
        tokens: &[BearerToken],
        has_oauth: bool,
        before: Option<&Self>,
        host: &dyn CallHost,
    ) -> Self {
        let listed = |token: &BearerToken| {
            let same = before
                .and_then(|before| before.tokens.get(&token.sha256))
                .filter(|old| old.token == *token);
            let caller = if let Some(same) = same {
                Arc::clone(&same.caller)
            } else {
                let name = token_caller_name(&token.name);
                let mut others = before.iter().flat_map(|before| before.tokens.values());
                let owners = others.find(|old| old.caller.name == name);
                let client = owners.map_or_else(
                    || host.client(&name),
                    |owners| Arc::clone(&owners.caller.client),
                );
                let rights = token.rights.clone();
                let preferences = token.preferences;
                Arc::new(Caller {
                    name,
                    rights,
                    client,
                    preferences,
                    revoked: CancellationToken::new(),
                })
            };
            (
                token.sha256,
                ListedToken {
                    token: token.clone(),
                    caller,
                },
            )
        };
        // Once tokens were configured, no caller is accepted without one.
        let open =
            !has_oauth && tokens.is_empty() && before.is_none_or(|before| before.allows_anonymous);
        let closed = before
            .filter(|before| before.allows_anonymous == open)
            .map(|before| before.anonymous_revoked.clone());
        Self {
            tokens: tokens.iter().map(listed).collect(),
            allows_anonymous: open,
            anonymous_revoked: closed.unwrap_or_default(),
        }
    }

    /// Revokes the tokens that are not in `next`.
    fn revoke_missing(&self, next: &Self) {
        for (hash, listed) in &self.tokens {
            if next
                .tokens
                .get(hash)
                .is_none_or(|next| next.token != listed.token)
            {
                listed.caller.revoked.cancel();
            }
        }
        if self.allows_anonymous && !next.allows_anonymous {
            self.anonymous_revoked.cancel();
        }
    }
}

/// Returns the name of the caller with the bearer token of this name.
pub fn token_caller_name(token: &str) -> String {
    format!("token:{token}")
}

/// One caller's share of the server.
struct CallerShare {
    client: Arc<dyn ClientShare>,
    used: Instant,
}

impl CallerShare {
    /// Returns whether no session and no request of the caller uses the share.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl AuthGate {
    /// Creates a gate with these options, for a listener at `address`.
    ///
    /// # Errors
    ///
    /// The keys of the authorization server cannot be read.
    pub(super) fn new(
        options: &HttpOptions,
        address: &ListenAddress,
        host: &dyn CallHost,
    ) -> Result<Self, String> {
        Ok(Self {
            tokens: ArcSwap::from_pointee(TokenTable::new(
                &options.tokens,
                options.oauth.is_some(),
                None,
                host,
            )),
            oauth: options.oauth.clone().map(TokenVerifier::new).transpose()?,
            is_reachable_remotely: !address.is_local(),
            has_host_names: AtomicBool::new(!options.allowed_hosts.is_empty()),
            has_proxies: !options.trusted_proxies.is_empty(),
            shares: Mutex::default(),
        })
    }

    /// Sets whether host names are configured.
    pub(super) fn set_has_hosts(&self, named: bool) {
        self.has_host_names.store(named, Ordering::Relaxed);
    }

    /// Replaces the tokens. Sessions and streams that were opened with removed tokens end.
    pub(super) fn set_tokens(&self, tokens: &[BearerToken], host: &dyn CallHost) {
        let before = self.tokens.load_full();
        let next = Arc::new(TokenTable::new(
            tokens,
            self.oauth.is_some(),
            Some(&before),
            host,
        ));
        self.tokens.store(Arc::clone(&next));
        before.revoke_missing(&next);
    }

    /// Returns the caller of a request, and the validity of its credentials.
    ///
    /// # Errors
    ///
    /// The request has no token, or one that is invalid or lacks a required scope.
    pub(super) fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: PeerSource,
        host: &dyn CallHost,
    ) -> Result<(Arc<Caller>, CredentialValidity), AuthDenial> {
        let known = self.tokens.load();
        if known.allows_anonymous {
            let name = peer.caller_name();
            let client = self.client_share(&name, host);
            let rights = CallerRights::All;
            let preferences = CallerPreferences::default();
            let caller = Caller {
                name,
                rights,
                client,
                preferences,
                revoked: known.anonymous_revoked.clone(),
            };
            return Ok((
                Arc::new(caller),
                CredentialValidity::Configured(known.anonymous_revoked.clone()),
            ));
        }
        let token = bearer_token(headers)?;
        if let Some(listed) = known.tokens.get(&token_hash(token)) {
            return Ok((
                Arc::clone(&listed.caller),
                CredentialValidity::Configured(listed.caller.revoked.clone()),
            ));
        }
        let oauth = self
            .oauth
            .as_ref()
            .ok_or(AuthDenial::Invalid("it is unknown"))?;
        let VerifiedToken {
            name,
            scopes,
            trust,
        } = oauth.verify(token)?;
        let client = self.client_share(&name, host);
        let rights = oauth.options().rights(scopes.iter().map(String::as_str));
        let preferences = CallerPreferences::default();
        let revoked = trust.key.removed.clone();
        let caller = Caller {
            name,
            rights,
            client,
            preferences,
            revoked,
        };
        Ok((Arc::new(caller), CredentialValidity::Token(trust)))
    }

    /// Returns the caller of a request with its current rights. Authenticates it again if its
    /// credentials became invalid while the body arrived.
    ///
    /// # Errors
    ///
    /// Like [`authenticate`](Self::authenticate).
    pub(super) fn authenticate_again(
        &self,
        (caller, trust): (Arc<Caller>, CredentialValidity),
        headers: &HeaderMap,
        peer: PeerSource,
        host: &dyn CallHost,
    ) -> Result<(Arc<Caller>, CredentialValidity), AuthDenial> {
        if trust.is_valid() {
            Ok((caller, trust))
        } else {
            self.authenticate(headers, peer, host)
        }
    }

    /// Checks that a request comes from an operator, who may see the activity of all callers. If
    /// tokens are required, an operator needs one with `admin`. Otherwise every client is an
    /// operator, provided that only this machine can reach the server and no proxy is expected to
    /// forward requests of others.
    ///
    /// # Errors
    ///
    /// The request is not from an operator.
    pub(super) fn check_operator(&self, headers: &HeaderMap) -> Result<(), AuthDenial> {
        let known = self.tokens.load();
        if known.allows_anonymous {
            let may_be_remote = self.is_reachable_remotely
                || self.has_proxies
                || self.has_host_names.load(Ordering::Relaxed);
            return if may_be_remote {
                Err(AuthDenial::Admin)
            } else {
                Ok(())
            };
        }
        let token = bearer_token(headers)?;
        match known.tokens.get(&token_hash(token)) {
            Some(listed) if listed.token.admin => Ok(()),
            Some(_) => Err(AuthDenial::Admin),
            None => {
                self.oauth
                    .as_ref()
                    .ok_or(AuthDenial::Invalid("it is unknown"))?
                    .verify(token)?;
                Err(AuthDenial::Admin)
            }
        }
    }

    /// Returns the share of the caller with this name, which is created on first use.
    fn client_share(&self, name: &str, host: &dyn CallHost) -> Arc<dyn ClientShare> {
        let now = Instant::now();
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get_mut(name) {
            share.used = now;
            return Arc::clone(&share.client);
        }
        if shares.len() >= MAX_SHARES {
            shares.retain(|_, share| {
                !share.is_idle() || now.duration_since(share.used) < SHARE_IDLE_TIMEOUT
            });
        }
        // Too many callers: evict the idle share that was used longest ago. Its caller starts with
        // a new share when it returns.
        if shares.len() >= MAX_SHARES {
            let idle = shares.iter().filter(|(_, share)| share.is_idle());
            let oldest = idle
                .min_by_key(|(_, share)| share.used)
                .map(|(name, _)| name.clone());
            oldest.and_then(|name| shares.remove(&name));
        }
        let client = host.client(name);
        shares.insert(
            name.to_owned(),
            CallerShare {
                client: Arc::clone(&client),
                used: now,
            },
        );
        client
    }

    /// Returns the verifier of OAuth tokens, if OAuth is configured.
    pub(super) fn oauth(&self) -> Option<&TokenVerifier> {
        self.oauth.as_ref()
    }

    /// Returns the response to a rejected request, with a `WWW-Authenticate` challenge.
    pub(super) fn challenge(&self, denied: &AuthDenial) -> Response {
        let (status, error) = match denied {
            AuthDenial::Missing => (StatusCode::UNAUTHORIZED, None),
            AuthDenial::Invalid(_) | AuthDenial::Differs(..) => {
                (StatusCode::UNAUTHORIZED, Some("invalid_token"))
            }
            AuthDenial::Scope | AuthDenial::Admin | AuthDenial::StepUp(_) => {
                (StatusCode::FORBIDDEN, Some("insufficient_scope"))
            }
        };
        let text = denied.to_string();
        let mut challenge = "Bearer realm=\"toolbay\"".to_owned();
        if let Some(error) = error {
            let _ = write!(
                challenge,
                ", error=\"{error}\", error_description=\"{text}\""
            );
        }
        if let Some(oauth) = &self.oauth {
            let _ = write!(
                challenge,
                ", resource_metadata=\"{}\"",
                oauth.metadata_url()
            );
            // Clients request exactly these scopes. A client without a token is offered the scopes
            // of all tools.
            let options = oauth.options();
            let scopes: Vec<&str> = match denied {
                AuthDenial::StepUp(scopes) => scopes.iter().map(String::as_str).collect(),
                AuthDenial::Scope | AuthDenial::Admin => {
                    options.required_scopes.iter().map(String::as_str).collect()
                }
                AuthDenial::Missing | AuthDenial::Invalid(_) | AuthDenial::Differs(..) => {
                    options.all_scopes().into_iter().collect()
                }
            };
            if !scopes.is_empty() {
                let _ = write!(challenge, ", scope=\"{}\"", scopes.join(" "));
            }
        }
        (status, [(WWW_AUTHENTICATE, challenge)], text).into_response()
    }
}

/// Returns the bearer token of a request. Tokens in the URL are not accepted, because URLs are
/// logged.
fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthDenial> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthDenial::Missing)?;
    let second = values.next();
    let text = value
        .to_str()
        .ok()
        .filter(|_| second.is_none())
        .ok_or(AuthDenial::Invalid("the Authorization header is malformed"))?;
    match text.split_once(' ') {
        Some((scheme, token))
            if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() =>
        {
            Ok(token.trim())
        }
        _ => Err(AuthDenial::Missing),
    }
}
