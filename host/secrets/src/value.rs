//! Values of secrets.

use std::fmt;

use zeroize::Zeroizing;

/// Minimum length of a value, in bytes. A shorter value would also match unrelated text.
const MIN_VALUE_BYTES: usize = 8;

/// Value of a secret, without surrounding white space. Overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// Returns the reason that the value is invalid, as the end of a sentence about it. It contains
    /// no part of the value.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| "is not valid UTF-8".to_owned())?
            .trim();
        match text.len() {
            0 => Err("is empty".to_owned()),
            length if length < MIN_VALUE_BYTES => Err(format!(
                "has fewer than {MIN_VALUE_BYTES} bytes, too few to redact reliably"
            )),
            _ => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
    }

    /// Returns the text of the value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes nothing of the value.
impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::SecretValue;

    #[test]
    fn surrounding_white_space_is_removed() {
        assert_eq!(
            SecretValue::parse(b"\n hunter2-hunter2\r\n")
                .unwrap()
                .as_str(),
            "hunter2-hunter2"
        );
    }

    #[test]
    fn values_that_cannot_be_redacted_are_rejected() {
        for (bytes, why) in [
            (&b""[..], "is empty"),
            (b" \n\t", "is empty"),
            (
                b"1234567\n",
                "has fewer than 8 bytes, too few to redact reliably",
            ),
            (b"hunter2-hunter2\xff", "is not valid UTF-8"),
        ] {
            assert_eq!(SecretValue::parse(bytes).unwrap_err(), why);
        }
        assert_eq!(
            format!("{:?}", SecretValue::parse(b"hunter2-hunter2").unwrap()),
            "Value(..)"
        );
    }
}
