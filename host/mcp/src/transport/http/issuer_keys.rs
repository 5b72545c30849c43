//! The keys of one token issuer: a file with a JWK set, which is reloaded periodically.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyOperations, PublicKeyUse,
};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::auth_denial::AuthDenial;

/// Interval at which a key file is read. A key that is added or removed takes effect within twice
/// this time.
pub(super) const KEY_READ_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which the keys of an unreadable file stay trusted: a program may be replacing the file.
const STALE_KEY_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum size of a key file, in bytes. A JWK set typically has a few thousand.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The keys of one issuer.
pub(super) struct IssuerKeys {
    path: PathBuf,
    state: Mutex<KeyState>,
}

/// A key that verifies tokens.
#[derive(Debug)]
pub(super) struct SigningKey {
    pub(super) jwk: Jwk,
    /// Cancelled when the key is no longer in the file.
    pub(super) removed: CancellationToken,
}

impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.jwk == other.jwk
    }
}

struct KeyState {
    keys: Vec<Arc<SigningKey>>,
    /// The time of the last successful read.
    read: Instant,
    /// The reason why the last read failed, if it did.
    failure: Option<String>,
}

impl IssuerKeys {
    /// Reads the keys in the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a JWK set or has no keys.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        let keys = read_jwk_set(&path)?;
        if keys.is_empty() {
            return Err(format!("{} has no keys", path.display()));
        }
        Ok(Self {
            path,
            state: Mutex::new(KeyState {
                keys,
                read: Instant::now(),
                failure: None,
            }),
        })
    }

    /// Reloads the file. Blocks.
    pub(super) fn reload(&self) {
        let found = read_jwk_set(&self.path);
        let mut state = self.state();
        match found {
            Ok(keys) => {
                if state.failure.is_some() {
                    tracing::info!("{} can be read again", self.path.display());
                }
                if keys.is_empty() && !state.keys.is_empty() {
                    tracing::warn!(
                        "{} has no keys any more; its issuer's tokens are rejected",
                        self.path.display()
                    );
                }
                // Unchanged keys are recognized by their content.
                let own = |key: &Arc<SigningKey>| {
                    state
                        .keys
                        .iter()
                        .find(|own| *own == key)
                        .unwrap_or(key)
                        .clone()
                };
                let keys: Vec<_> = keys.iter().map(own).collect();
                state
                    .keys
                    .iter()
                    .filter(|own| !keys.contains(own))
                    .for_each(|own| own.removed.cancel());
                *state = KeyState {
                    keys,
                    read: Instant::now(),
                    failure: None,
                };
            }
            Err(why) => {
                if state.failure.as_ref() != Some(&why) {
                    let patience = toolbay_model::text::format_duration(STALE_KEY_TIMEOUT);
                    tracing::warn!("{why}; its previous keys stay trusted for {patience}");
                }
                state.failure = Some(why);
            }
        }
    }

    /// Returns whether `key` is still one of the keys.
    pub(super) fn contains(&self, key: &Arc<SigningKey>) -> bool {
        let state = self.state();
        state.is_fresh()
            && state
                .keys
                .iter()
                .any(|own| Arc::ptr_eq(own, key) || own == key)
    }

    /// Returns the key that verifies a signature made with `algorithm`: the key with this id, or
    /// the only key if there is no id.
    ///
    /// # Errors
    ///
    /// There is no such key, or it may not be used for this.
    pub(super) fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<SigningKey>, AuthDenial> {
        let state = self.state();
        if !state.is_fresh() {
            return Err(AuthDenial::Invalid("the keys of its issuer cannot be read"));
        }
        let named = |key: &&Arc<SigningKey>| {
            id.is_none_or(|id| key.jwk.common.key_id.as_deref() == Some(id))
        };
        let mut why = AuthDenial::Invalid("its signing key is unknown");
        let mut found = None;
        for key in state.keys.iter().filter(named) {
            match check_usage(&key.jwk, algorithm) {
                Ok(()) if found.is_none() => found = Some(key),
                // It is unknown which of the keys signed the token.
                Ok(()) => {
                    return Err(AuthDenial::Invalid(
                        "it does not name the key that signed it (kid)",
                    ));
                }
                Err(other) => why = other,
            }
        }
        found.map(Arc::clone).ok_or(why)
    }

    // Held for a few instructions and never across an await.
    fn state(&self) -> MutexGuard<'_, KeyState> {
        self.state.lock()
    }
}

impl KeyState {
    fn is_fresh(&self) -> bool {
        self.read.elapsed() < STALE_KEY_TIMEOUT
    }
}

/// Checks that `key` may verify signatures made with `algorithm` (RFC 7517, sections 4.2 to 4.4).
fn check_usage(key: &Jwk, algorithm: Algorithm) -> Result<(), AuthDenial> {
    let common = &key.common;
    let signs = common
        .public_key_use
        .as_ref()
        .is_none_or(|what| *what == PublicKeyUse::Signature);
    let verifies = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !signs || !verifies {
        return Err(AuthDenial::Invalid(
            "its signing key is not for signatures (use, key_ops)",
        ));
    }
    let stated = common
        .key_algorithm
        .map(|algorithm| Algorithm::try_from(algorithm).ok());
    let fits = match (&key.algorithm, algorithm) {
        (
            AlgorithmParameters::RSA(_),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
        ) => true,
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256) => {
            curve.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES384) => {
            curve.curve == EllipticCurve::P384
        }
        (AlgorithmParameters::OctetKeyPair(curve), Algorithm::EdDSA) => {
            curve.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    if fits && stated.is_none_or(|stated| stated == Some(algorithm)) {
        Ok(())
    } else {
        Err(AuthDenial::Invalid(
            "its signing key is for another algorithm",
        ))
    }
}

fn read_jwk_set(path: &Path) -> Result<Vec<Arc<SigningKey>>, String> {
    let name = path.display();
    let text = toolbay_tls::read_regular_file(path, MAX_FILE_BYTES)?;
    let set: JwkSet = serde_json::from_slice(&text)
        .map_err(|error| format!("{name} is not a JWK set: {error}"))?;
    let key = |jwk| {
        Arc::new(SigningKey {
            jwk,
            removed: CancellationToken::new(),
        })
    };
    Ok(set.keys.into_iter().map(key).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A key for P-256 without an owner.
    fn key(change: &Value) -> Value {
        let mut key = json!({
            "kty": "EC", "crv": "P-256",
            "x": "RsF0OzK7l--zTzCQAIir67v4G0hj63wIHd6Eq3SajuE", "y": "CJE6iy5M_oYMCwKBzMjdPR8a3V5dwk5_gpwxkSapGC4",
        });
        for (name, value) in change.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    fn keys(keys: &[Value]) -> (tempfile::NamedTempFile, IssuerKeys) {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&file, keys);
        let keys = IssuerKeys::open(file.path().to_owned()).unwrap();
        (file, keys)
    }

    fn write(file: &tempfile::NamedTempFile, keys: &[Value]) {
        std::fs::write(file.path(), json!({"keys": keys}).to_string()).unwrap();
    }

    /// Simulates a period in which the file could not be read.
    fn unread(keys: &IssuerKeys) {
        keys.state().read = Instant::now().checked_sub(STALE_KEY_TIMEOUT).unwrap();
    }

    #[test]
    fn a_key_verifies_what_it_is_for() {
        let found =
            |change: &Value, algorithm| keys(&[key(change)]).1.find(None, algorithm).map(drop);
        let other_use = Err(AuthDenial::Invalid(
            "its signing key is not for signatures (use, key_ops)",
        ));
        let other_algorithm = Err(AuthDenial::Invalid(
            "its signing key is for another algorithm",
        ));
        let es256 = Algorithm::ES256;
        for fine in [
            json!({}),
            json!({"use": "sig"}),
            json!({"key_ops": ["verify"]}),
            json!({"key_ops": ["sign", "verify"], "use": "sig", "alg": "ES256"}),
        ] {
            assert_eq!(found(&fine, es256), Ok(()), "{fine}");
        }
        for wrong in [
            json!({"use": "enc"}),
            json!({"use": "anything"}),
            json!({"key_ops": []}),
            json!({"key_ops": ["sign"]}),
            json!({"key_ops": ["deriveKey"]}),
            json!({"use": "enc", "key_ops": ["verify"]}),
        ] {
            assert_eq!(found(&wrong, es256), other_use, "{wrong}");
        }
        for wrong in ["ES384", "RS256", "ECDH-ES", "ES256K", "none"] {
            assert_eq!(
                found(&json!({"alg": wrong}), es256),
                other_algorithm,
                "{wrong}"
            );
        }
        for wrong in [
            Algorithm::ES384,
            Algorithm::RS256,
            Algorithm::EdDSA,
            Algorithm::HS256,
        ] {
            assert_eq!(found(&json!({}), wrong), other_algorithm, "{wrong:?}");
        }
        assert_eq!(found(&json!({"crv": "P-384"}), es256), other_algorithm);
        let secret = json!({"kty": "oct", "k": "c2VjcmV0"});
        assert_eq!(
            keys(&[secret]).1.find(None, Algorithm::HS256).map(drop),
            other_algorithm
        );
    }

    #[test]
    fn a_key_is_found_by_its_id_among_those_that_fit() {
        let find = |all: &[Value], id| keys(all).1.find(id, Algorithm::ES256);
        let id = |id: &str| key(&json!({"kid": id}));
        assert_eq!(
            find(&[id("a"), id("b")], Some("b"))
                .unwrap()
                .jwk
                .common
                .key_id
                .as_deref(),
            Some("b")
        );
        assert_eq!(
            find(&[id("a")], Some("b")),
            Err(AuthDenial::Invalid("its signing key is unknown"))
        );
        let ambiguous = Err(AuthDenial::Invalid(
            "it does not name the key that signed it (kid)",
        ));
        assert_eq!(find(&[id("a"), id("b")], None), ambiguous);
        // An encryption key can have the same id.
        assert!(
            find(
                &[key(&json!({"kid": "a", "use": "enc"})), id("a")],
                Some("a")
            )
            .is_ok()
        );
        assert!(find(&[key(&json!({"use": "enc"})), id("a")], None).is_ok());
    }

    #[test]
    fn a_removed_key_is_not_trusted_after_the_next_look() {
        let (file, keys) = keys(&[key(&json!({"kid": "a"}))]);
        let trusted = keys.find(Some("a"), Algorithm::ES256).unwrap();
        keys.reload();
        assert!(keys.contains(&trusted), "it is the same key");
        assert!(!trusted.removed.is_cancelled());
        write(&file, &[key(&json!({"kid": "b"}))]);
        keys.reload();
        assert!(!keys.contains(&trusted) && keys.find(Some("a"), Algorithm::ES256).is_err());
        assert!(trusted.removed.is_cancelled(), "what it allowed ends");
        // Another key with the same id does not help.
        write(
            &file,
            &[key(
                &json!({"kid": "a", "x": "A7G18Ztam2mdXctRRciaYCArd401g5Zawm83D7evhYY"}),
            )],
        );
        keys.reload();
        assert!(!keys.contains(&trusted));
        write(&file, &[]);
        keys.reload();
        assert_eq!(
            keys.find(Some("a"), Algorithm::ES256),
            Err(AuthDenial::Invalid("its signing key is unknown"))
        );
    }

    #[test]
    fn a_file_that_is_a_fifo_or_too_large_is_like_one_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let text = json!({"keys": [key(&json!({}))]}).to_string();
        std::fs::write(&path, &text).unwrap();
        let keys = IssuerKeys::open(path.clone()).unwrap();
        let trusted = keys.find(None, Algorithm::ES256).unwrap();
        let at = path.display();
        let fifo = || {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        };
        let large = || {
            std::fs::write(&path, text.clone() + &" ".repeat(MAX_FILE_BYTES)).unwrap();
        };
        let changes: [(&dyn Fn(), String); 3] = [
            (&|| {}, format!("{at}: does not exist")),
            (&fifo, format!("{at}: is not a regular file")),
            (&large, format!("{at}: is larger than 1024 KiB")),
        ];
        for (change, why) in changes {
            std::fs::remove_file(&path).unwrap();
            change();
            assert_eq!(read_jwk_set(&path).err(), Some(why.clone()));
            keys.reload();
            assert_eq!(keys.state().failure, Some(why));
            assert!(keys.contains(&trusted), "{at}: its keys stay trusted");
            std::fs::write(dir.path().join("new"), &text).unwrap();
            std::fs::rename(dir.path().join("new"), &path).unwrap();
            keys.reload();
            assert_eq!(keys.state().failure, None);
            assert!(keys.contains(&trusted));
        }
    }

    #[test]
    fn keys_that_cannot_be_read_are_trusted_for_a_moment_only() {
        let (file, keys) = keys(&[key(&json!({}))]);
        let trusted = keys.find(None, Algorithm::ES256).unwrap();
        std::fs::write(file.path(), "{\"keys\": [").unwrap();
        keys.reload();
        assert!(keys.contains(&trusted), "half a file is no removal");
        unread(&keys);
        keys.reload();
        assert!(!keys.contains(&trusted));
        assert_eq!(
            keys.find(None, Algorithm::ES256),
            Err(AuthDenial::Invalid("the keys of its issuer cannot be read"))
        );
        write(&file, &[key(&json!({}))]);
        keys.reload();
        assert!(keys.contains(&trusted), "and back");
        // Nothing reloads the file, as when the file system hangs.
        unread(&keys);
        assert!(!keys.contains(&trusted));
    }
}
