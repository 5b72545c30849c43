//! What the host answered to one guest.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blob::BinaryText;
use crate::http::HttpAnswer;

/// What the host answered to one guest, in the order in which the guest asked. With the same answers, the same guest does
/// the same.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostAnswers {
    /// When the call began, in nanoseconds of Unix time.
    pub began: u64,
    /// What all random numbers follow from.
    pub seed: RandomSeed,
    /// What the clocks showed: for each look, the nanoseconds since the one before it, and for the first since `began`.
    #[serde(default, serialize_with = "pack", deserialize_with = "unpack", skip_serializing_if = "Vec::is_empty")]
    pub clock: Vec<u64>,
    /// What was ready whenever the guest waited for several things, or looked whether one is ready.
    #[serde(default, serialize_with = "pack", deserialize_with = "unpack", skip_serializing_if = "Vec::is_empty")]
    pub polls: Vec<Vec<u32>>,
    /// How often the guest was told that somebody waits for its result before it was told that nobody does; `None` if it
    /// was never told that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// SHA-256 of the environment variables that it had, by their names (see [`variable`](crate::variable)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Those whose values contain secrets, with marks in the place of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marked: BTreeMap<String, String>,
    /// Whether anything that the guest got had secrets, which are redacted here: what it makes of them may differ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The variables that tell it of its trace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trace: BTreeMap<String, String>,
    /// What it did beyond its memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<HostOperation>,
}

/// 32 random bytes, in hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomSeed(pub [u8; 32]);

/// One operation, with what came of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostOperation {
    /// What was done, such as `POST https://api.example.com/issues`.
    pub what: String,
    /// What came of it.
    pub answer: OperationResult,
}

/// What came of an operation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationResult {
    /// Of an HTTP request.
    Http(HttpAnswer),
    /// Of an operation with state, in a form that only the sandbox knows.
    State(BinaryText),
}

impl HostOperation {
    /// The bytes that it takes, about.
    pub fn size(&self) -> usize {
        self.what.len()
            + match &self.answer {
                OperationResult::Http(answer) => answer.size(),
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
        hex::decode_to_slice(&text, &mut seed).map_err(|_| D::Error::custom("expected 64 hexadecimal digits"))?;
        Ok(Self(seed))
    }
}

/// Numbers take a few bytes each, as postcard in base64.
fn pack<T: Serialize, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let packed = postcard::to_allocvec(values).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(&BASE64.encode(packed))
}

fn unpack<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || D::Error::custom("expected numbers, packed and in base64");
    let packed = BASE64.decode(text).map_err(|_| wrong())?;
    match postcard::take_from_bytes(&packed) {
        Ok((values, [])) => Ok(values),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_same_after_they_were_written() {
        let operation = |what: &str, answer| HostOperation { what: what.to_owned(), answer };
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
