//! Quotas of state owners.

use bytesize::ByteSize;

/// Approximate size that an entry takes in the file in addition to its key and value, in bytes.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

/// Approximate size that an owner takes in the file, in bytes.
const OWNER_OVERHEAD_BYTES: u64 = 512;

/// Quota of one owner. It bounds what is stored, across restarts, and nothing is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateQuota {
    /// Maximum total size of keys and values in all buckets.
    pub size: ByteSize,
    /// Maximum number of keys in all buckets.
    pub keys: u64,
}

/// Usage of one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Total size of keys and values, in bytes.
    pub bytes: u64,
    /// Number of keys.
    pub keys: u64,
}

impl QuotaUsage {
    /// Returns the usage with an additional entry of this size.
    pub(crate) fn with_entry(self, bytes: usize) -> Self {
        Self {
            bytes: self.bytes.saturating_add(bytes as u64),
            keys: self.keys.saturating_add(1),
        }
    }

    /// Returns the usage without an entry of this size.
    pub(crate) fn without_entry(self, bytes: usize) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes as u64),
            keys: self.keys.saturating_sub(1),
        }
    }

    /// Adds the usage of other entries.
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.keys = self.keys.saturating_add(other.keys);
    }

    /// Returns the approximate size in the file, in bytes. The limit of the whole database counts
    /// this size, so that many owners with little state each are bounded, too.
    pub(crate) fn file_bytes(self) -> u64 {
        if self.keys == 0 {
            0
        } else {
            self.bytes + self.keys.saturating_mul(ENTRY_OVERHEAD_BYTES) + OWNER_OVERHEAD_BYTES
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_size_includes_overhead_and_is_zero_without_keys() {
        let one = QuotaUsage::default().with_entry(10);
        assert_eq!(one, QuotaUsage { bytes: 10, keys: 1 });
        assert_eq!(
            one.file_bytes(),
            10 + ENTRY_OVERHEAD_BYTES + OWNER_OVERHEAD_BYTES
        );
        assert_eq!(one.without_entry(10).file_bytes(), 0);
    }
}
