//! What separates the connections of one plugin.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

/// Whose credential a request carries. Connections are used again for equal credentials only: a server may take what
/// one request proved as true for the connection.
///
/// The secret itself is not kept.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct PoolPartition(Option<[u8; 32]>);

impl PoolPartition {
    /// The requests that carry no credential of the host's.
    pub const NONE: Self = Self(None);

    /// The requests that carry this secret, or act for whoever it identifies.
    pub fn of(secret: &[u8]) -> Self {
        let digest = digest(&SHA256, secret);
        let mut key = [0; 32];
        // A SHA-256 has 32 bytes.
        key.iter_mut().zip(digest.as_ref()).for_each(|(key, byte)| *key = *byte);
        Self(Some(key))
    }
}

/// Nothing of the secret, not even its digest.
impl fmt::Debug for PoolPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Partition(..)" } else { "Partition::NONE" })
    }
}

#[cfg(test)]
mod tests {
    use super::PoolPartition;

    #[test]
    fn equal_secrets_are_one_partition_and_none_is_shown() {
        assert_eq!(PoolPartition::of(b"secret"), PoolPartition::of(b"secret"));
        assert_ne!(PoolPartition::of(b"secret"), PoolPartition::of(b"Secret"));
        assert_ne!(PoolPartition::of(b""), PoolPartition::NONE);
        assert_eq!(format!("{:?}", PoolPartition::of(b"secret")), "Partition(..)");
    }
}
