//! Who calls: the bearer of a token, or anybody where that is allowed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::oauth::{Verified, Verifier};
use crate::access::{Caller, Rights};
use crate::admission::{Admission, Client};
use crate::config::Http;

/// How long a caller that does nothing keeps its share, and with it what its rate limit counted.
const FORGET_AFTER: Duration = Duration::from_mins(10);

/// Shares above which those of callers that do nothing are given up.
const SHARES: usize = 1024;

/// Says who calls.
pub(super) struct Gate {
    tokens: HashMap<[u8; 32], Arc<Caller>>,
    oauth: Option<Verifier>,
    open: bool,
    shares: Mutex<HashMap<String, Share>>,
}

/// What one caller has of the server.
struct Share {
    client: Arc<Client>,
    used: Instant,
}

/// Why nobody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// There is no token.
    Missing,
    /// There is one, and it does not hold.
    Invalid(&'static str),
    /// It holds, and opens too little.
    Scope,
}

impl Gate {
    /// By the configuration.
    ///
    /// # Errors
    ///
    /// The keys of the authorization server cannot be read.
    pub(super) fn new(config: &Http, admission: &Admission) -> Result<Self, String> {
        let tokens = config.tokens.iter().filter_map(|token| {
            let client = Arc::new(admission.client());
            let caller = Caller { name: format!("token:{}", token.name), rights: token.rights(), client };
            Some((from_hex(&token.sha256)?, Arc::new(caller)))
        });
        Ok(Self {
            tokens: tokens.collect(),
            oauth: config.oauth.clone().map(Verifier::new).transpose()?,
            open: !config.needs_token(),
            shares: Mutex::default(),
        })
    }

    /// Who makes a request.
    ///
    /// # Errors
    ///
    /// Nobody who may.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        admission: &Admission,
    ) -> Result<Arc<Caller>, Denied> {
        if self.open {
            let name = format!("ip:{peer}");
            let client = self.share(&name, admission);
            return Ok(Arc::new(Caller { name, rights: Rights::All, client }));
        }
        let token = bearer(headers)?;
        if let Some(caller) = self.tokens.get(&hash(token)) {
            return Ok(Arc::clone(caller));
        }
        let oauth = self.oauth.as_ref().ok_or(Denied::Invalid("it is not one of this server's"))?;
        let Verified { subject, scopes, .. } = oauth.verify(token)?;
        let name = format!("oauth:{subject}");
        let client = self.share(&name, admission);
        let rights = oauth.config().rights(scopes.iter().map(String::as_str));
        Ok(Arc::new(Caller { name, rights, client }))
    }

    /// The share of the caller with this name: the same for all that it does.
    fn share(&self, name: &str, admission: &Admission) -> Arc<Client> {
        let now = Instant::now();
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get_mut(name) {
            share.used = now;
            return Arc::clone(&share.client);
        }
        if shares.len() >= SHARES {
            shares.retain(|_, share| {
                Arc::strong_count(&share.client) > 1 || now.duration_since(share.used) < FORGET_AFTER
            });
        }
        let client = Arc::new(admission.client());
        shares.insert(name.to_owned(), Share { client: Arc::clone(&client), used: now });
        client
    }

    /// The authorization server's side, if there is one.
    pub(super) fn oauth(&self) -> Option<&Verifier> {
        self.oauth.as_ref()
    }

    /// How the peer is told that it is not let in, and what would let it in.
    pub(super) fn challenge(&self, denied: Denied) -> Response {
        let (status, error, text) = match denied {
            Denied::Missing => (StatusCode::UNAUTHORIZED, None, "a bearer token is needed".to_owned()),
            Denied::Invalid(why) => {
                (StatusCode::UNAUTHORIZED, Some("invalid_token"), format!("the token is not accepted: {why}"))
            }
            Denied::Scope => {
                (StatusCode::FORBIDDEN, Some("insufficient_scope"), "the token opens too little".to_owned())
            }
        };
        let mut challenge = "Bearer realm=\"toolbay\"".to_owned();
        if let Some(error) = error {
            let _ = write!(challenge, ", error=\"{error}\", error_description=\"{text}\"");
        }
        if let Some(oauth) = &self.oauth {
            let _ = write!(challenge, ", resource_metadata=\"{}\"", oauth.metadata_url());
            let scopes: Vec<&str> = oauth.config().scopes.iter().map(String::as_str).collect();
            if !scopes.is_empty() {
                let _ = write!(challenge, ", scope=\"{}\"", scopes.join(" "));
            }
        }
        (status, [(WWW_AUTHENTICATE, challenge)], text).into_response()
    }
}

/// The token of a request. One in the address is none: addresses are logged.
fn bearer(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, none) = (values.next().ok_or(Denied::Missing)?, values.next());
    let text = value.to_str().ok().filter(|_| none.is_none()).ok_or(Denied::Invalid("it cannot be read"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Denied::Missing),
    }
}

/// What is known of a token instead of it.
pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}
