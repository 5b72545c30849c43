//! The key that signs the log, and the public key that verifies its signatures.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::claim::SignedClaim;
use crate::part::LogPart;

/// Length of the secret key and of the public key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// The signing key of a log.
pub(crate) struct LogKey(Ed25519KeyPair);

/// The key that verifies the signatures of a log. Displays as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

impl LogKey {
    /// Creates the key with this seed.
    pub(crate) fn from_seed(seed: &[u8]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).ok()
    }

    /// Returns the public key.
    pub(crate) fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().try_into().unwrap_or_default())
    }

    /// Signs `claim`. Returns the signature in hexadecimal.
    pub(crate) fn sign(&self, part: LogPart, claim: SignedClaim) -> String {
        hex::encode(self.0.sign(claim.to_signed_text(part).as_bytes()))
    }
}

impl fmt::Debug for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogKey(…)")
    }
}

impl PublicKey {
    /// Parses a public key of 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(hex::decode(text.trim()).ok()?.try_into().ok()?))
    }

    /// Returns whether `signature`, in hexadecimal, is a valid signature of `claim`.
    pub(crate) fn verifies(&self, signature: &str, part: LogPart, claim: SignedClaim) -> bool {
        let Ok(signature) = hex::decode(signature) else {
            return false;
        };
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(claim.to_signed_text(part).as_bytes(), &signature)
            .is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
