//! How much an owner may keep.

use bytesize::ByteSize;

/// Bytes that an entry takes in the file besides its key and value, about.
const ENTRY: u64 = 128;

/// Bytes that an owner takes in the file, about.
const OWNER: u64 = 512;

/// How much one owner may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateQuota {
    /// Bytes of keys and values, all buckets together.
    pub size: ByteSize,
    /// Keys, all buckets together.
    pub keys: u64,
}

/// How much one owner keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Keys.
    pub keys: u64,
}

impl QuotaUsage {
    /// With one more entry of this size.
    pub(crate) fn plus(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes as u64), keys: self.keys.saturating_add(1) }
    }

    /// With one entry of this size less.
    pub(crate) fn minus(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes as u64), keys: self.keys.saturating_sub(1) }
    }

    /// What it takes in the file, about. The bound of the whole database counts this, so that many owners with next to
    /// nothing each are bounded, too.
    pub(crate) fn weight(self) -> u64 {
        if self.keys == 0 { 0 } else { self.bytes + self.keys.saturating_mul(ENTRY) + OWNER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_weighs_more_than_its_bytes_and_nothing_weighs_nothing() {
        let one = QuotaUsage::default().plus(10);
        assert_eq!(one, QuotaUsage { bytes: 10, keys: 1 });
        assert_eq!(one.weight(), 10 + ENTRY + OWNER);
        assert_eq!(one.minus(10).weight(), 0);
    }
}
