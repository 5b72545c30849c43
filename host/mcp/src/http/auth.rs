//! Authentication: bearer tokens, or anonymous callers if the configuration allows them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolbay_model::CallerPreferences;

use super::address::ListenAddress;
use super::denied::{AuthDenial, token_hash};
use super::oauth::{TokenVerifier, VerifiedToken};
use super::options::{BearerToken, HttpOptions};
use super::peer::PeerSource;
use super::trust::CallerTrust;
use crate::access::CallerRights;
use crate::caller::Caller;
use crate::host::{ClientShare, Host};

/// How long an idle caller keeps its share, and with it the state of its rate limit.
const SHARE_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Number of shares above which those of idle callers are dropped. Callers with a session or a request count, but their
/// number has limits of its own.
const MAX_SHARES: usize = 1024;

/// Authenticates callers.
pub(super) struct AuthGate {
    known: ArcSwap<TokenTable>,
    oauth: Option<TokenVerifier>,
    /// Whether others than this machine can reach the server.
    reachable: bool,
    /// Whether it has names of its own (`http.hosts`): a proxy on this machine leads others to it, then.
    named: AtomicBool,
    shares: Mutex<HashMap<String, CallerShare>>,
}

/// The tokens of the configuration, which can change.
struct TokenTable {
    tokens: HashMap<[u8; 32], ListedToken>,
    /// Whether callers need no token.
    open: bool,
    /// Cancelled when callers without a token need one.
    closed: CancellationToken,
}

/// A token of the configuration.
struct ListedToken {
    token: BearerToken,
    caller: Arc<Caller>,
    /// Cancelled when the token is no longer there, or allows something else.
    revoked: CancellationToken,
}

impl TokenTable {
    /// These tokens. Those that were there before keep what their callers used up; `needed` if there are others as well.
    fn new(tokens: &[BearerToken], needed: bool, before: Option<&Self>, host: &dyn Host) -> Self {
        let listed = |token: &BearerToken| {
            let same = before.and_then(|before| before.tokens.get(&token.sha256)).filter(|old| old.token == *token);
            let (caller, revoked) = if let Some(same) = same {
                (Arc::clone(&same.caller), same.revoked.clone())
            } else {
                let name = format!("token:{}", token.name);
                let mut others = before.iter().flat_map(|before| before.tokens.values());
                let owners = others.find(|old| old.caller.name == name);
                let client = owners.map_or_else(|| host.client(&name), |owners| Arc::clone(&owners.caller.client));
                let (rights, preferences) = (token.rights.clone(), token.preferences);
                (Arc::new(Caller { name, rights, client, preferences }), CancellationToken::new())
            };
            (token.sha256, ListedToken { token: token.clone(), caller, revoked })
        };
        // Once there were tokens, nobody is let in without one.
        let open = !needed && tokens.is_empty() && before.is_none_or(|before| before.open);
        let closed = before.filter(|before| before.open == open).map(|before| before.closed.clone());
        Self { tokens: tokens.iter().map(listed).collect(), open, closed: closed.unwrap_or_default() }
    }

    /// Ends what was opened by what is not in `next`.
    fn revoke_missing(&self, next: &Self) {
        for (hash, listed) in &self.tokens {
            if next.tokens.get(hash).is_none_or(|next| next.token != listed.token) {
                listed.revoked.cancel();
            }
        }
        if self.open && !next.open {
            self.closed.cancel();
        }
    }
}

/// One caller's share of the server.
struct CallerShare {
    client: Arc<dyn ClientShare>,
    used: Instant,
}

impl CallerShare {
    /// Whether no session and no request of the caller uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl AuthGate {
    /// A gate with these options, for a listener at `address`.
    ///
    /// # Errors
    ///
    /// The keys of the authorization server cannot be read.
    pub(super) fn new(options: &HttpOptions, address: &ListenAddress, host: &dyn Host) -> Result<Self, String> {
        Ok(Self {
            known: ArcSwap::from_pointee(TokenTable::new(&options.tokens, options.oauth.is_some(), None, host)),
            oauth: options.oauth.clone().map(TokenVerifier::new).transpose()?,
            reachable: !address.is_local(),
            named: AtomicBool::new(!options.hosts.is_empty()),
            shares: Mutex::default(),
        })
    }

    /// Whether the server has names of its own, from now on.
    pub(super) fn set_has_hosts(&self, named: bool) {
        self.named.store(named, Ordering::Relaxed);
    }

    /// From now on, these are the tokens. What others opened ends.
    pub(super) fn set_tokens(&self, tokens: &[BearerToken], host: &dyn Host) {
        let before = self.known.load_full();
        let next = Arc::new(TokenTable::new(tokens, self.oauth.is_some(), Some(&before), host));
        self.known.store(Arc::clone(&next));
        before.revoke_missing(&next);
    }

    /// The caller of a request, and what the trust in it rests on.
    ///
    /// # Errors
    ///
    /// The request has no token, or one that is invalid or lacks a required scope.
    pub(super) fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: PeerSource,
        host: &dyn Host,
    ) -> Result<(Arc<Caller>, CallerTrust), AuthDenial> {
        let known = self.known.load();
        if known.open {
            let name = peer.caller_name();
            let client = self.client_share(&name, host);
            let caller = Caller { name, rights: CallerRights::All, client, preferences: CallerPreferences::default() };
            return Ok((Arc::new(caller), CallerTrust::Standing(known.closed.clone())));
        }
        let token = bearer_token(headers)?;
        if let Some(listed) = known.tokens.get(&token_hash(token)) {
            return Ok((Arc::clone(&listed.caller), CallerTrust::Standing(listed.revoked.clone())));
        }
        let oauth = self.oauth.as_ref().ok_or(AuthDenial::Invalid("it is unknown"))?;
        let VerifiedToken { name, scopes, trust } = oauth.verify(token)?;
        let client = self.client_share(&name, host);
        let rights = oauth.options().rights(scopes.iter().map(String::as_str));
        let caller = Caller { name, rights, client, preferences: CallerPreferences::default() };
        Ok((Arc::new(caller), CallerTrust::Token(trust)))
    }

    /// Whether a request comes from an operator, who may see what all callers do: from this machine, as far as no tokens are
    /// set up and no proxy is expected to pass on the requests of others, or with a token that says so.
    ///
    /// # Errors
    ///
    /// It has no such token.
    pub(super) fn check_operator(&self, headers: &HeaderMap) -> Result<(), AuthDenial> {
        let known = self.known.load();
        if known.open {
            return if self.reachable || self.named.load(Ordering::Relaxed) { Err(AuthDenial::Admin) } else { Ok(()) };
        }
        let token = bearer_token(headers)?;
        match known.tokens.get(&token_hash(token)) {
            Some(listed) if listed.token.admin => Ok(()),
            Some(_) => Err(AuthDenial::Admin),
            None => {
                self.oauth.as_ref().ok_or(AuthDenial::Invalid("it is unknown"))?.verify(token)?;
                Err(AuthDenial::Admin)
            }
        }
    }

    /// The share of the caller with this name, created on first use.
    fn client_share(&self, name: &str, host: &dyn Host) -> Arc<dyn ClientShare> {
        let now = Instant::now();
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get_mut(name) {
            share.used = now;
            return Arc::clone(&share.client);
        }
        if shares.len() >= MAX_SHARES {
            shares.retain(|_, share| !share.is_idle() || now.duration_since(share.used) < SHARE_IDLE_TIMEOUT);
        }
        // There are many callers: the one that came longest ago begins anew when it comes back.
        if shares.len() >= MAX_SHARES {
            let idle = shares.iter().filter(|(_, share)| share.is_idle());
            let oldest = idle.min_by_key(|(_, share)| share.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| shares.remove(&name));
        }
        let client = host.client(name);
        shares.insert(name.to_owned(), CallerShare { client: Arc::clone(&client), used: now });
        client
    }

    /// The verifier of OAuth tokens, if OAuth is configured.
    pub(super) fn oauth(&self) -> Option<&TokenVerifier> {
        self.oauth.as_ref()
    }

    /// The response to a rejected request, with a `WWW-Authenticate` challenge.
    pub(super) fn challenge(&self, denied: &AuthDenial) -> Response {
        let (status, error) = match denied {
            AuthDenial::Missing => (StatusCode::UNAUTHORIZED, None),
            AuthDenial::Invalid(_) | AuthDenial::Differs(..) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
            AuthDenial::Scope | AuthDenial::Admin | AuthDenial::StepUp(_) => {
                (StatusCode::FORBIDDEN, Some("insufficient_scope"))
            }
        };
        let text = denied.to_string();
        let mut challenge = "Bearer realm=\"toolbay\"".to_owned();
        if let Some(error) = error {
            let _ = write!(challenge, ", error=\"{error}\", error_description=\"{text}\"");
        }
        if let Some(oauth) = &self.oauth {
            let _ = write!(challenge, ", resource_metadata=\"{}\"", oauth.metadata_url());
            // Clients ask for these and no others: whoever has no token yet gets what all tools need.
            let options = oauth.options();
            let scopes: Vec<&str> = match denied {
                AuthDenial::StepUp(scopes) => scopes.iter().map(String::as_str).collect(),
                AuthDenial::Scope | AuthDenial::Admin => options.scopes.iter().map(String::as_str).collect(),
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

/// The bearer token of a request. Tokens in the URL are not accepted, because URLs are logged.
fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthDenial> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, none) = (values.next().ok_or(AuthDenial::Missing)?, values.next());
    let text = value
        .to_str()
        .ok()
        .filter(|_| none.is_none())
        .ok_or(AuthDenial::Invalid("the Authorization header is malformed"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(AuthDenial::Missing),
    }
}
