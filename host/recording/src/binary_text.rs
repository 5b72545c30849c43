//! Binary data in a recording, readable where it is text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Binary data. In JSON, it is a string if it is text, and otherwise an object with the member
/// `base64`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryText(pub Vec<u8>);

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum BlobText<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(EncodedBlob),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct EncodedBlob {
    base64: String,
}

impl Serialize for BinaryText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        // Arrays of small numbers are often valid UTF-8, but not readable. Write text with control
        // characters as base64.
        let is_readable = |text: &&str| {
            !text
                .chars()
                .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        };
        match std::str::from_utf8(&self.0).ok().filter(is_readable) {
            Some(text) => BlobText::Text(text.into()),
            None => BlobText::Bytes(EncodedBlob {
                base64: BASE64.encode(&self.0),
            }),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BinaryText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(Self);
        }
        match BlobText::deserialize(deserializer)? {
            BlobText::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            BlobText::Bytes(EncodedBlob { base64 }) => BASE64
                .decode(base64)
                .map(Self)
                .map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_a_round_trip() {
        for bytes in [&b""[..], b"text\r\n", "é".as_bytes(), b"\0\x01", b"\xff"] {
            let blob = BinaryText(bytes.to_vec());
            let json = serde_json::to_string(&blob).unwrap();
            assert_eq!(serde_json::from_str::<BinaryText>(&json).unwrap(), blob);
            let packed = postcard::to_allocvec(&blob).unwrap();
            assert_eq!(postcard::from_bytes::<BinaryText>(&packed).unwrap(), blob);
        }
        assert_eq!(
            serde_json::to_string(&BinaryText(b"a".to_vec())).unwrap(),
            r#""a""#
        );
        assert_eq!(
            serde_json::to_string(&BinaryText(vec![0])).unwrap(),
            r#"{"base64":"AA=="}"#
        );
    }
}
