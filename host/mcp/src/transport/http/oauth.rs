//! Tokens of an authorization server: JWTs, checked against its keys (RFC 9728, RFC 9068).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{
    Algorithm, DecodingKey, Header, Validation, decode, decode_header, get_current_timestamp,
};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::auth_denial::{AuthDenial, TokenClaim, token_hash};
use super::credential_validity::TokenValidity;
use super::issuer_keys::{IssuerKeys, KEY_READ_INTERVAL};
use super::options::{AuthorizationServer, OAuth};

/// The accepted signature algorithms: all use public keys, none a shared secret.
const ACCEPTED_ALGORITHMS: [Algorithm; 9] = [
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

/// The accepted types of tokens: access tokens (RFC 9068), and JWTs without a more specific type.
const ACCEPTED_TYPES: [&str; 2] = ["at+jwt", "jwt"];

/// Maximum difference between the clocks of the issuer and of this machine.
const CLOCK_LEEWAY: Duration = Duration::from_mins(1);

/// Maximum number of cached verified tokens. The cache avoids verifying a signature with every
/// request.
const MAX_CACHED_TOKENS: usize = 1024;

/// Maximum time for which a verified token is cached.
const TOKEN_CACHE_TTL: Duration = Duration::from_mins(1);

/// Maximum length of a subject, in bytes (OIDC Core 1.0, section 2).
const MAX_SUBJECT_BYTES: usize = 255;

/// Number of bytes of a token's hash that name it. They are enough to make the name unique.
const TOKEN_NAME_BYTES: usize = 16;

/// Verifies tokens.
pub(super) struct TokenVerifier {
    options: OAuth,
    /// The keys of each issuer, which are trusted only for the tokens of that issuer.
    issuers: HashMap<String, Arc<IssuerKeys>>,
    cache: Mutex<HashMap<[u8; 32], (VerifiedToken, Instant)>>,
}

/// The content of a verified token.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    /// The owner, in the form of a caller's name. Tokens of different owners never have the same
    /// name.
    pub name: String,
    /// The scopes.
    pub scopes: BTreeSet<String>,
    /// The basis of the trust in the token, and its end.
    pub trust: TokenValidity,
}

#[derive(Deserialize)]
struct TokenClaims {
    exp: Option<Number>,
    sub: Option<String>,
    /// Scopes separated by spaces, or a list.
    scope: Option<Value>,
    /// Used by some servers instead of `scope`.
    scp: Option<Value>,
}

/// The claims that are needed to find the key and to report a wrong audience.
#[derive(Deserialize)]
struct IssuerClaim {
    iss: Option<String>,
    aud: Option<Value>,
}

impl TokenVerifier {
    /// Creates a verifier and reads the keys.
    ///
    /// # Errors
    ///
    /// A file cannot be read, is not a JWK set or has no keys.
    pub(super) fn new(options: OAuth) -> Result<Self, String> {
        let open = |server: &AuthorizationServer| {
            Ok((
                server.issuer.clone(),
                Arc::new(IssuerKeys::open(server.jwks.clone())?),
            ))
        };
        let issuers = options
            .authorization_servers
            .iter()
            .map(open)
            .collect::<Result<_, String>>()?;
        Ok(Self {
            options,
            issuers,
            cache: Mutex::default(),
        })
    }

    /// Reloads the keys periodically, until `stop` is cancelled.
    pub(super) async fn reload_keys_periodically(&self, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(KEY_READ_INTERVAL))
            .await
            .is_some()
        {
            let issuers: Vec<Arc<IssuerKeys>> = self.issuers.values().map(Arc::clone).collect();
            // Runs on a blocking thread because a file system may hang.
            let reading =
                tokio::task::spawn_blocking(move || issuers.iter().for_each(|keys| keys.reload()));
            if let Err(error) = reading.await {
                tracing::error!(%error, "reading the keys of tokens failed unexpectedly");
            }
        }
    }

    /// Verifies a token.
    ///
    /// # Errors
    ///
    /// The token is invalid or lacks a required scope.
    pub(super) fn verify(&self, token: &str) -> Result<VerifiedToken, AuthDenial> {
        let key = token_hash(token);
        let known = self.lock_cache().get(&key).cloned();
        let is_good = |known: &(VerifiedToken, Instant)| {
            known.1.elapsed() < TOKEN_CACHE_TTL && known.0.trust.is_valid()
        };
        let verified = if let Some((known, _)) = known.filter(is_good) {
            known
        } else {
            let verified = self.verify_uncached(token)?;
            self.cache_token(key, verified.clone());
            verified
        };
        if self.options.required_scopes.is_subset(&verified.scopes) {
            Ok(verified)
        } else {
            Err(AuthDenial::Scope)
        }
    }

    fn verify_uncached(&self, token: &str) -> Result<VerifiedToken, AuthDenial> {
        let header = access_token_header(token)?;
        // Not trusted yet: the claim only selects the keys to try.
        let IssuerClaim { iss, aud } =
            insecure_decode_claims(token).map_err(|error| to_denial(error.kind()))?;
        let issuer = iss.ok_or(AuthDenial::Invalid(MISSING_CLAIM))?;
        let known = || self.issuers.keys().map(String::as_str);
        let keys = self
            .issuers
            .get(&issuer)
            .ok_or_else(|| TokenClaim::Issuer.mismatch(&issuer, known()))?;
        let key = keys.find(header.kid.as_deref(), header.alg)?;
        let decoding = DecodingKey::from_jwk(&key.jwk)
            .map_err(|_| AuthDenial::Invalid("its signing key cannot be used"))?;
        let mut validation = Validation::new(header.alg);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.set_audience(&[&self.options.audience]);
        validation.set_issuer(&[&issuer]);
        validation.validate_nbf = true;
        validation.leeway = CLOCK_LEEWAY.as_secs();
        let claims = decode::<TokenClaims>(token, &decoding, &validation).map_err(|error| {
            match error.kind() {
                ErrorKind::InvalidAudience => TokenClaim::Audience.mismatch(
                    &aud.unwrap_or_default().to_string(),
                    [self.options.audience.as_str()],
                ),
                error => to_denial(error),
            }
        })?;
        let claims = claims.claims;
        let expires =
            self.checked_expiry(&claims.exp.ok_or(AuthDenial::Invalid(MISSING_CLAIM))?)?;
        // The validation also accepts the last second.
        let until = expires.saturating_add(CLOCK_LEEWAY.as_secs() + 1);
        let mut scopes: BTreeSet<String> = BTreeSet::new();
        for text in string_values(claims.scope.as_ref())
            .into_iter()
            .chain(string_values(claims.scp.as_ref()))
        {
            scopes.extend(text.split_ascii_whitespace().map(str::to_owned));
        }
        let name = owner_name(claims.sub.as_deref(), &issuer, token)?;
        Ok(VerifiedToken {
            name,
            scopes,
            trust: TokenValidity {
                issuer: Arc::clone(keys),
                key,
                until,
            },
        })
    }

    /// Returns when a token expires, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The token is valid for longer than the configured lifetime. Such a token could not be
    /// revoked in time.
    fn checked_expiry(&self, exp: &Number) -> Result<u64, AuthDenial> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the fraction of a second, and what the validation has rejected"
        )]
        let seconds = exp
            .as_u64()
            .or(exp.as_f64().map(|seconds| seconds as u64))
            .unwrap_or(u64::MAX);
        let latest = get_current_timestamp()
            + self.options.max_token_lifetime.as_secs()
            + CLOCK_LEEWAY.as_secs();
        if seconds > latest {
            return Err(AuthDenial::Invalid(
                "it is valid for longer than http.oauth.max_token_lifetime allows",
            ));
        }
        Ok(seconds)
    }

    fn cache_token(&self, key: [u8; 32], verified: VerifiedToken) {
        let mut known = self.lock_cache();
        if known.len() >= MAX_CACHED_TOKENS {
            known.retain(|_, (_, since)| since.elapsed() < TOKEN_CACHE_TTL);
        }
        // Too many tokens: evicting one costs its owner only another verification.
        if known.len() >= MAX_CACHED_TOKENS
            && let Some(any) = known.keys().next().copied()
        {
            known.remove(&any);
        }
        known.insert(key, (verified, Instant::now()));
    }

    // Held for a few instructions and never across an await.
    fn lock_cache(&self) -> MutexGuard<'_, HashMap<[u8; 32], (VerifiedToken, Instant)>> {
        self.cache.lock()
    }

    /// Returns the options.
    pub(super) fn options(&self) -> &OAuth {
        &self.options
    }

    /// Returns the URL of the resource's metadata (RFC 9728, section 3.1): the well-known path
    /// precedes the path of the resource.
    pub(super) fn metadata_url(&self) -> String {
        let resource = &self.options.resource;
        let Ok(mut url) = Url::parse(resource) else {
            return resource.clone();
        };
        let path = format!("{METADATA_PATH}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.into()
    }

    /// Returns the metadata of the resource.
    pub(super) fn metadata(&self) -> Value {
        let issuers: Vec<&String> = self
            .options
            .authorization_servers
            .iter()
            .map(|server| &server.issuer)
            .collect();
        let scopes = self.options.all_scopes();
        json!({
            "resource": self.options.resource,
            "resource_name": "Toolbay",
            "authorization_servers": issuers,
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
        })
    }
}

/// The well-known path of the metadata. The path of the resource follows it.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Returns the header of a token that can be an access token.
fn access_token_header(token: &str) -> Result<Header, AuthDenial> {
    let not_a_jwt = || AuthDenial::Invalid("it is not a JWT");
    let header = decode_header(token).map_err(|_| not_a_jwt())?;
    let part = token
        .split('.')
        .next()
        .and_then(|part| BASE64.decode(part).ok())
        .unwrap_or_default();
    let members: Map<String, Value> = serde_json::from_slice(&part).map_err(|_| not_a_jwt())?;
    // No extension is supported, and an empty list is an error too (RFC 7515, section 4.1.11).
    if members.contains_key("crit") {
        return Err(AuthDenial::Invalid(
            "its header has critical extensions (crit), and none is supported",
        ));
    }
    let kind = header.typ.as_deref().unwrap_or("jwt").to_ascii_lowercase();
    if !ACCEPTED_TYPES.contains(&kind.strip_prefix("application/").unwrap_or(&kind)) {
        return Err(AuthDenial::Invalid("it is not an access token (typ)"));
    }
    if !ACCEPTED_ALGORITHMS.contains(&header.alg) {
        return Err(AuthDenial::Invalid(
            "it is not signed with an accepted algorithm (RSA, P-256, P-384 or Ed25519)",
        ));
    }
    Ok(header)
}

/// Returns the name of the owner of a verified token. A token without a subject is its own owner.
fn owner_name(subject: Option<&str>, issuer: &str, token: &str) -> Result<String, AuthDenial> {
    match subject.filter(|subject| !subject.is_empty()) {
        Some(subject) if subject.len() > MAX_SUBJECT_BYTES => {
            Err(AuthDenial::Invalid("its subject (sub) is too long"))
        }
        // Two issuers may use the same name for different people.
        Some(subject) => Ok(format!("oauth:{subject} of {issuer}")),
        None => {
            // The owner can encode a signature in several ways, so the hash covers only the signed
            // part.
            let signed = token.rsplit_once('.').map_or(token, |(signed, _)| signed);
            let digest: String = hex::encode(token_hash(signed))
                .chars()
                .take(2 * TOKEN_NAME_BYTES)
                .collect();
            Ok(format!("oauth-token:{digest} of {issuer}"))
        }
    }
}

fn string_values(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

const MISSING_CLAIM: &str = "a required claim (exp, aud or iss) is missing";

fn to_denial(error: &ErrorKind) -> AuthDenial {
    AuthDenial::Invalid(match error {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidIssuer => "its issuer is not trusted",
        ErrorKind::InvalidSignature => "its signature is invalid",
        ErrorKind::MissingRequiredClaim(_) => MISSING_CLAIM,
        _ => "it is invalid",
    })
}
