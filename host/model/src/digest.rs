//! SHA-256 digests, which identify a plugin's bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A SHA-256 digest. Displayed as 64 lower-case hexadecimal digits, and serialized as its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Prefix of a digest that names its algorithm, as in `sha256:` and 64 hexadecimal digits.
    pub const PREFIX: &str = "sha256:";

    /// Creates a digest from its bytes. Nothing is hashed.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses 64 hexadecimal digits. Returns `None` for any other text.
    pub fn from_hex(digits: &str) -> Option<Self> {
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = digits.get(2 * index..2 * index + 2)?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Parses [`Self::PREFIX`] and 64 hexadecimal digits. Returns `None` for any other text.
    pub fn from_prefixed_hex(text: &str) -> Option<Self> {
        text.strip_prefix(Self::PREFIX).and_then(Self::from_hex)
    }

    /// Returns the 32 bytes of the digest.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_hexadecimal_digits_are_a_digest() {
        let digits = "0aFf".repeat(16);
        let digest = Digest::from_hex(&digits).unwrap();
        assert_eq!(digest.to_string(), digits.to_lowercase());
        assert_eq!(
            Digest::from_prefixed_hex(&format!("sha256:{digits}")),
            Some(digest)
        );
        for text in [
            String::new(),
            "0aFf".repeat(15),
            "0aFf".repeat(17),
            "+a".repeat(32),
            "é".repeat(32),
            format!("sha256:{digits}"),
        ] {
            assert_eq!(Digest::from_hex(&text), None, "{text}");
        }
        for text in [
            digits.clone(),
            format!("SHA256:{digits}"),
            format!("sha256: {digits}"),
        ] {
            assert_eq!(Digest::from_prefixed_hex(&text), None, "{text}");
        }
    }
}
