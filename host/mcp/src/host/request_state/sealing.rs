//! The text form of states: a version, a nonce and the claim encrypted with AES-256-GCM-SIV, in
//! base64url.
//!
//! The nonce is random. If two states ever have the same nonce, this cipher reveals only whether
//! they are equal.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use toolbay_model::CallJournal;
use toolbay_private::KEY_BYTES;

use super::binding::RequestBinding;
use super::state_lifetime::StateId;

/// The version of the format. A state with another version is rejected.
const FORMAT_VERSION: u8 = 3;

/// Additional authenticated data. It prevents ciphertext from another use of the key from being
/// accepted as a state.
const SEAL_PURPOSE: &[u8] = b"toolbay request state 1";

/// The contents of a state.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct StateClaim {
    /// Identifies the state.
    pub(super) id: StateId,
    /// Expiry time, in milliseconds of Unix time.
    pub(super) expires: u64,
    /// The only server on which the state is valid; `None` if it is valid on all servers that have
    /// the key.
    pub(super) server: Option<[u8; KEY_BYTES]>,
    /// The request that the state is bound to.
    pub(super) binding: RequestBinding,
    /// The keys of the questions that were asked with it.
    pub(super) asked: Vec<String>,
    /// The recorded state with which the call must continue. It also contains the edition of the
    /// plugin with which the call started.
    pub(super) journal: CallJournal,
}

/// The encryption key, prepared for use.
pub(super) struct StateSeal(RandomizedNonceKey);

impl StateSeal {
    pub(super) fn new(key: &[u8; KEY_BYTES]) -> Option<Self> {
        RandomizedNonceKey::new(&AES_256_GCM_SIV, key)
            .ok()
            .map(Self)
    }

    /// Encrypts the claim and encodes it as text; `None` if it cannot be encrypted.
    pub(super) fn seal(&self, claim: &StateClaim) -> Option<String> {
        let mut text = postcard::to_allocvec(claim).ok()?;
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(SEAL_PURPOSE), &mut text)
            .ok()?;
        let sealed = [&[FORMAT_VERSION][..], nonce.as_ref(), &text].concat();
        Some(BASE64.encode(sealed))
    }

    /// Decodes and decrypts the claim of a text; `None` if it was not made with this key, or was
    /// changed.
    pub(super) fn open(&self, text: &str) -> Option<StateClaim> {
        let mut sealed = BASE64.decode(text).ok()?;
        let (version, rest) = sealed.split_first_mut()?;
        let (nonce, text) = rest.split_at_mut_checked(NONCE_LEN)?;
        if *version != FORMAT_VERSION {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let claim = self
            .0
            .open_in_place(nonce, Aad::from(SEAL_PURPOSE), text)
            .ok()?;
        let (claim, rest) = postcard::take_from_bytes(claim).ok()?;
        rest.is_empty().then_some(claim)
    }
}
