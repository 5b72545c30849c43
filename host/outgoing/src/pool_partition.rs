//! Partitions of the connection pool of a plugin.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

/// The credential of a request. Connections are reused only for equal credentials: a server can
/// apply the authentication of one request to the whole connection.
///
/// The secret itself is not stored.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct PoolPartition(Option<[u8; 32]>);

impl PoolPartition {
    /// The partition of requests without a credential of the host.
    pub(crate) const NONE: Self = Self(None);

    /// Returns the partition of requests that carry this secret, or act for the caller that it
    /// identifies.
    pub(crate) fn from_secret(secret: &[u8]) -> Self {
        let digest = digest(&SHA256, secret);
        let mut key = [0; 32];
        // A SHA-256 has 32 bytes.
        key.iter_mut()
            .zip(digest.as_ref())
            .for_each(|(key, byte)| *key = *byte);
        Self(Some(key))
    }
}

/// Shows nothing of the secret, not even its digest.
impl fmt::Debug for PoolPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "PoolPartition(..)"
        } else {
            "PoolPartition::NONE"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PoolPartition;

    #[test]
    fn equal_secrets_are_one_partition_and_none_is_shown() {
        assert_eq!(
            PoolPartition::from_secret(b"secret"),
            PoolPartition::from_secret(b"secret")
        );
        assert_ne!(
            PoolPartition::from_secret(b"secret"),
            PoolPartition::from_secret(b"Secret")
        );
        assert_ne!(PoolPartition::from_secret(b""), PoolPartition::NONE);
        assert_eq!(
            format!("{:?}", PoolPartition::from_secret(b"secret")),
            "PoolPartition(..)"
        );
    }
}
