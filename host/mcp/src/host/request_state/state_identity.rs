//! The key that seals states, the servers on which the states are valid, and the start of their
//! validity.

use std::io;

use toolbay_private::KEY_BYTES;

use super::sealing::StateSeal;

/// The identity that seals and checks the states of a server. It is replaced if the record of used
/// states is lost.
pub(super) struct StateIdentity {
    pub(super) seal: StateSeal,
    /// Identifies the servers that share the record of used states.
    pub(super) server: [u8; KEY_BYTES],
    /// The secret that is stored next to the record and belongs to it.
    pub(super) secret: [u8; KEY_BYTES],
    /// States issued before this time, in milliseconds of Unix time, are not accepted.
    pub(super) not_before: u64,
    /// Number of earlier identities of this process.
    pub(super) epoch: u64,
}

impl StateIdentity {
    /// Creates the identity of servers whose `secret` is the key.
    pub(super) fn with_own_key(secret: [u8; KEY_BYTES]) -> io::Result<Self> {
        // Every server that has this key uses the same record.
        Self::new(&secret, [0; KEY_BYTES], secret)
    }

    /// Creates the identity of servers that get their key from elsewhere, and whose `secret` is
    /// their id.
    pub(super) fn with_shared_key(
        key: &[u8; KEY_BYTES],
        secret: [u8; KEY_BYTES],
    ) -> io::Result<Self> {
        Self::new(key, secret, secret)
    }

    fn new(
        key: &[u8; KEY_BYTES],
        server: [u8; KEY_BYTES],
        secret: [u8; KEY_BYTES],
    ) -> io::Result<Self> {
        let seal = StateSeal::new(key)
            .ok_or_else(|| io::Error::other("the key of request states cannot be used"))?;
        Ok(Self {
            seal,
            server,
            secret,
            not_before: 0,
            epoch: 0,
        })
    }
}
