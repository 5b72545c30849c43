//! Host answers that one guest received.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::binary_text::BinaryText;
use crate::http::HttpAnswer;

/// Host answers that one guest received, in request order. With the same answers, the same guest
/// behaves identically.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostAnswers {
    /// Start of the call, in nanoseconds of Unix time.
    pub began: u64,
    /// Seed of all random numbers.
    pub seed: RandomSeed,
    /// Clock readings, in nanoseconds since the previous reading. The first one is relative to
    /// `began`.
    #[serde(
        default,
        serialize_with = "serialize_packed",
        deserialize_with = "deserialize_packed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub clock: Vec<u64>,
    /// Indices of the ready pollables, for each poll or readiness check.
    #[serde(
        default,
        serialize_with = "serialize_packed",
        deserialize_with = "deserialize_packed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub polls: Vec<Vec<u32>>,
    /// Number of checks for cancellation that returned false before the first one that returned
    /// true; `None` if none returned true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// SHA-256 digests of the environment variables, by name (see
    /// [`variable_digest`](crate::variable_digest)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Environment variables whose values contain secrets, with the secrets redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marked: BTreeMap<String, String>,
    /// True if the guest received secrets, which are redacted here. A replay can then differ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Environment variables that carry the trace context.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<String, String>,
    /// Operations with external effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<HostOperation>,
}

/// Random seed of 32 bytes, serialized in hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomSeed(pub [u8; 32]);

/// Operation of a guest, with its result.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostOperation {
    /// Description of the operation, such as `POST https://api.example.com/issues`.
    pub what: String,
    /// Result of the operation.
    pub answer: OperationResult,
}

/// Result of an operation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationResult {
    /// Result of an HTTP request.
    Http(HttpAnswer),
    /// Result of a state operation, in a format internal to the sandbox.
    State(BinaryText),
}

impl HostOperation {
    /// Returns the approximate memory use, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        self.what.len()
            + match &self.answer {
                OperationResult::Http(answer) => answer.approximate_bytes(),
                OperationResult::State(bytes) => bytes.0.len(),
            }
    }
}

impl Serialize for RandomSeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for RandomSeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut seed = [0; 32];
        hex::decode_to_slice(&text, &mut seed)
            .map_err(|_| D::Error::custom("expected 64 hexadecimal digits"))?;
        Ok(Self(seed))
    }
}

/// Serializes numbers compactly, as postcard in base64.
fn serialize_packed<T: Serialize, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let packed = postcard::to_allocvec(values).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(&BASE64.encode(packed))
}

fn deserialize_packed<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let invalid_value = || D::Error::custom("expected numbers, packed and in base64");
    let packed = BASE64.decode(text).map_err(|_| invalid_value())?;
    match postcard::take_from_bytes(&packed) {
        Ok((values, [])) => Ok(values),
        _ => Err(invalid_value()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_a_round_trip() {
        let operation = |description: &str, answer| HostOperation {
            what: description.to_owned(),
            answer,
        };
        let response = HttpAnswer::Response {
            status: 200,
            fields: vec![("a".to_owned(), BinaryText(b"\xff".to_vec()))],
            body: BinaryText(b"made".to_vec()),
            pieces: vec![1, 3],
            end: Some(crate::HttpError::HttpRequestBodySize(Some(7))),
        };
        let answers = HostAnswers {
            began: 1,
            seed: RandomSeed([7; 32]),
            clock: vec![0, u64::MAX, 300],
            polls: vec![vec![], vec![0, 2]],
            cancelled: Some(3),
            variables: BTreeMap::from([("LANG".to_owned(), "ab".to_owned())]),
            marked: BTreeMap::from([("KEY".to_owned(), "[secret:key]".to_owned())]),
            redacted: true,
            trace: BTreeMap::new(),
            operations: vec![
                operation("POST /", OperationResult::Http(response)),
                operation("get x", OperationResult::State(BinaryText(vec![0, 1]))),
            ],
        };
        let text = serde_json::to_string(&answers).unwrap();
        assert_eq!(serde_json::from_str::<HostAnswers>(&text).unwrap(), answers);
    }
}
