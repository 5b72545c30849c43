//! Tokens of an authorization server: JWTs, checked against its keys (RFC 9728, RFC 9068).

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, get_current_timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::denied::{Denied, hash};
use super::options::OAuth;

/// The accepted signature algorithms: all use public keys, none a shared secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Shortest interval of reading the key file again, so that tokens with invented keys do not cause a load.
const REREAD: Duration = Duration::from_secs(10);

/// Number of verified tokens to remember, so that each signature is verified once.
const REMEMBERED: usize = 1024;

/// Verifies tokens.
pub(super) struct Verifier {
    options: OAuth,
    keys: Mutex<Keys>,
    known: Mutex<HashMap<[u8; 32], Verified>>,
}

struct Keys {
    set: Arc<JwkSet>,
    read: Instant,
}

/// The content of a verified token.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    /// The owner.
    pub subject: String,
    /// The scopes.
    pub scopes: BTreeSet<String>,
    expires: u64,
}

#[derive(Deserialize)]
struct Claims {
    /// Required; the validation checks that it is present.
    exp: Option<u64>,
    iss: Option<String>,
    sub: Option<String>,
    client_id: Option<String>,
    /// Separated by spaces.
    scope: Option<String>,
    /// Used by some servers instead of `scope`.
    scp: Option<Value>,
}

impl Verifier {
    /// Reads the keys.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a JWK set or has no keys.
    pub(super) fn new(options: OAuth) -> Result<Self, String> {
        let set = Arc::new(read_keys(&options.jwks)?);
        let keys = Mutex::new(Keys { set, read: Instant::now() });
        Ok(Self { options, keys, known: Mutex::default() })
    }

    /// Verifies a token.
    ///
    /// # Errors
    ///
    /// The token is invalid or lacks a required scope.
    pub(super) fn verify(&self, token: &str) -> Result<Verified, Denied> {
        let key = hash(token);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let verified = if let Some(known) = known.filter(|known| known.expires > get_current_timestamp()) {
            known
        } else {
            let verified = self.check(token)?;
            self.remember(key, verified.clone());
            verified
        };
        if self.options.scopes.is_subset(&verified.scopes) { Ok(verified) } else { Err(Denied::Scope) }
    }

    fn check(&self, token: &str) -> Result<Verified, Denied> {
        let header = decode_header(token).map_err(|_| Denied::Invalid("it is not a JWT"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Denied::Invalid("it is not signed with an accepted algorithm (RSA, P-256, P-384 or Ed25519)"));
        }
        let jwk = self.key(header.kid.as_deref()).ok_or(Denied::Invalid("its signing key is unknown"))?;
        let fits = |algorithm| Algorithm::try_from(algorithm).is_ok_and(|algorithm| algorithm == header.alg);
        if jwk.common.key_algorithm.is_some_and(|algorithm| !fits(algorithm)) {
            return Err(Denied::Invalid("its signing key is for another algorithm"));
        }
        let decoding = DecodingKey::from_jwk(&jwk).map_err(|_| Denied::Invalid("its signing key cannot be used"))?;
        let mut validation = Validation::new(header.alg);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.set_audience(&[&self.options.audience]);
        validation.set_issuer(&self.options.authorization_servers);
        validation.validate_nbf = true;
        let claims = decode::<Claims>(token, &decoding, &validation).map_err(|error| denied(error.kind()))?.claims;
        let mut scopes: BTreeSet<String> = BTreeSet::new();
        for text in claims.scope.iter().map(String::as_str).chain(texts(claims.scp.as_ref())) {
            scopes.extend(text.split_ascii_whitespace().map(str::to_owned));
        }
        let subject = claims.sub.or(claims.client_id).unwrap_or_else(|| "unnamed".to_owned());
        // Two issuers may use the same name for different people.
        let subject = format!("{subject} of {}", claims.iss.unwrap_or_default());
        Ok(Verified { subject, scopes, expires: claims.exp.unwrap_or_default() })
    }

    /// The key with this id; without an id, the only key.
    fn key(&self, id: Option<&str>) -> Option<Jwk> {
        let find = |set: &JwkSet| match id {
            Some(id) => set.find(id).cloned(),
            None => set.keys.first().filter(|_| set.keys.len() == 1).cloned(),
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let found = find(&keys.set);
        if found.is_some() || keys.read.elapsed() < REREAD {
            return found;
        }
        // Keys rotate: the token may be signed with a new one.
        keys.read = Instant::now();
        match read_keys(&self.options.jwks) {
            Ok(set) => keys.set = Arc::new(set),
            Err(why) => tracing::warn!("{why}; keeping the previous keys"),
        }
        find(&keys.set)
    }

    fn remember(&self, key: [u8; 32], verified: Verified) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            let now = get_current_timestamp();
            known.retain(|_, verified| verified.expires > now);
        }
        if known.len() < REMEMBERED {
            known.insert(key, verified);
        }
    }

    /// The options.
    pub(super) fn options(&self) -> &OAuth {
        &self.options
    }

    /// URL of the resource's metadata (RFC 9728, section 3.1): the well-known path precedes the path of the resource.
    pub(super) fn metadata_url(&self) -> String {
        let resource = &self.options.resource;
        let Ok(mut url) = Url::parse(resource) else { return resource.clone() };
        let path = format!("{METADATA}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.into()
    }

    /// The metadata of the resource.
    pub(super) fn metadata(&self) -> Value {
        let scopes: BTreeSet<&String> = self.options.scopes.iter().chain(self.options.tools.keys()).collect();
        json!({
            "resource": self.options.resource,
            "resource_name": "Toolbay",
            "authorization_servers": self.options.authorization_servers,
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
        })
    }
}

/// The well-known path of the metadata; the path of the resource follows it.
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource";

fn read_keys(path: &Path) -> Result<JwkSet, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {}", error.kind()))?;
    let set: JwkSet = serde_json::from_str(&text).map_err(|error| format!("{name} is not a JWK set: {error}"))?;
    if set.keys.is_empty() { Err(format!("{name} has no keys")) } else { Ok(set) }
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn denied(error: &ErrorKind) -> Denied {
    Denied::Invalid(match error {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::InvalidIssuer => "its issuer is not trusted",
        ErrorKind::InvalidSignature => "its signature is invalid",
        ErrorKind::MissingRequiredClaim(_) => "a required claim (exp, aud or iss) is missing",
        _ => "it is invalid",
    })
}
