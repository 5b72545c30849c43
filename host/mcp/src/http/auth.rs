//! Authentication: bearer tokens, or anonymous callers if the configuration allows them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use super::denied::{Denied, hash};
use super::oauth::{Verified, Verifier};
use super::options::Options;
use super::peer::network;
use super::trust::Trust;
use crate::access::Rights;
use crate::caller::Caller;
use crate::host::{Client, Host};

/// How long an idle caller keeps its share, and with it the state of its rate limit.
const FORGET_AFTER: Duration = Duration::from_mins(10);

/// Number of shares above which those of idle callers are dropped. Callers with a session or a request count, but their
/// number has limits of its own.
const SHARES: usize = 1024;

/// Authenticates callers.
pub(super) struct Gate {
    tokens: HashMap<[u8; 32], Arc<Caller>>,
    /// The tokens of operators.
    admins: HashSet<[u8; 32]>,
    oauth: Option<Verifier>,
    open: bool,
    /// Whether others than this machine can reach the server.
    reachable: bool,
    shares: Mutex<HashMap<String, Share>>,
}

/// One caller's share of the server.
struct Share {
    client: Arc<dyn Client>,
    used: Instant,
}

impl Share {
    /// Whether no session and no request of the caller uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl Gate {
    /// A gate with these options, for a listener at `address`.
    ///
    /// # Errors
    ///
    /// The keys of the authorization server cannot be read.
    pub(super) fn new(options: &Options, address: SocketAddr, host: &dyn Host) -> Result<Self, String> {
        let tokens = options.tokens.iter().map(|token| {
            let name = format!("token:{}", token.name);
            let client = host.client(&name);
            (token.sha256, Arc::new(Caller { name, rights: token.rights.clone(), client }))
        });
        Ok(Self {
            tokens: tokens.collect(),
            admins: options.tokens.iter().filter(|token| token.admin).map(|token| token.sha256).collect(),
            oauth: options.oauth.clone().map(Verifier::new).transpose()?,
            open: !options.needs_token(),
            reachable: !address.ip().is_loopback(),
            shares: Mutex::default(),
        })
    }

    /// The caller of a request, and what the trust in it rests on.
    ///
    /// # Errors
    ///
    /// The request has no token, or one that is invalid or lacks a required scope.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        host: &dyn Host,
    ) -> Result<(Arc<Caller>, Trust), Denied> {
        if self.open {
            let name = format!("ip:{}", network(peer));
            let client = self.share(&name, host);
            return Ok((Arc::new(Caller { name, rights: Rights::All, client }), Trust::Standing));
        }
        let token = bearer(headers)?;
        if let Some(caller) = self.tokens.get(&hash(token)) {
            return Ok((Arc::clone(caller), Trust::Standing));
        }
        let oauth = self.oauth.as_ref().ok_or(Denied::Invalid("it is unknown"))?;
        let Verified { name, scopes, trust } = oauth.verify(token)?;
        let client = self.share(&name, host);
        let rights = oauth.options().rights(scopes.iter().map(String::as_str));
        Ok((Arc::new(Caller { name, rights, client }), Trust::Token(trust)))
    }

    /// Whether a request comes from an operator, who may see what all callers do: from this machine, as far as no tokens are
    /// set up, or with a token that says so.
    ///
    /// # Errors
    ///
    /// It has no such token.
    pub(super) fn operator(&self, headers: &HeaderMap) -> Result<(), Denied> {
        if self.open {
            return if self.reachable { Err(Denied::Admin) } else { Ok(()) };
        }
        let token = bearer(headers)?;
        let hash = hash(token);
        if self.admins.contains(&hash) {
            return Ok(());
        }
        if !self.tokens.contains_key(&hash) {
            self.oauth.as_ref().ok_or(Denied::Invalid("it is unknown"))?.verify(token)?;
        }
        Err(Denied::Admin)
    }

    /// The share of the caller with this name, created on first use.
    fn share(&self, name: &str, host: &dyn Host) -> Arc<dyn Client> {
        let now = Instant::now();
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get_mut(name) {
            share.used = now;
            return Arc::clone(&share.client);
        }
        if shares.len() >= SHARES {
            shares.retain(|_, share| !share.is_idle() || now.duration_since(share.used) < FORGET_AFTER);
        }
        // There are many callers: the one that came longest ago begins anew when it comes back.
        if shares.len() >= SHARES {
            let idle = shares.iter().filter(|(_, share)| share.is_idle());
            let oldest = idle.min_by_key(|(_, share)| share.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| shares.remove(&name));
        }
        let client = host.client(name);
        shares.insert(name.to_owned(), Share { client: Arc::clone(&client), used: now });
        client
    }

    /// The verifier of OAuth tokens, if OAuth is configured.
    pub(super) fn oauth(&self) -> Option<&Verifier> {
        self.oauth.as_ref()
    }

    /// The response to a rejected request, with a `WWW-Authenticate` challenge.
    pub(super) fn challenge(&self, denied: Denied) -> Response {
        let (status, error) = match denied {
            Denied::Missing => (StatusCode::UNAUTHORIZED, None),
            Denied::Invalid(_) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
            Denied::Scope | Denied::Admin => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
        };
        let text = denied.to_string();
        let mut challenge = "Bearer realm=\"toolbay\"".to_owned();
        if let Some(error) = error {
            let _ = write!(challenge, ", error=\"{error}\", error_description=\"{text}\"");
        }
        if let Some(oauth) = &self.oauth {
            let _ = write!(challenge, ", resource_metadata=\"{}\"", oauth.metadata_url());
            let scopes: Vec<&str> = oauth.options().scopes.iter().map(String::as_str).collect();
            if !scopes.is_empty() {
                let _ = write!(challenge, ", scope=\"{}\"", scopes.join(" "));
            }
        }
        (status, [(WWW_AUTHENTICATE, challenge)], text).into_response()
    }
}

/// The bearer token of a request. Tokens in the URL are not accepted, because URLs are logged.
fn bearer(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, none) = (values.next().ok_or(Denied::Missing)?, values.next());
    let text = value
        .to_str()
        .ok()
        .filter(|_| none.is_none())
        .ok_or(Denied::Invalid("the Authorization header is malformed"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Denied::Missing),
    }
}
