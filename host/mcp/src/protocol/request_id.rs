//! The id of a request, which its response repeats as the client wrote it.

use std::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;

/// Maximum length of an id, in bytes of its JSON. The id is stored for as long as the request is
/// open.
pub(crate) const MAX_ID_BYTES: usize = 1 << 10;

/// Description of a valid id, for error messages.
pub(crate) const ID_DESCRIPTION: &str =
    "a string of at most 1,024 bytes or a number of at most 64 bits";

/// The id of a request: a string or a number (MCP allows no `null`).
///
/// Ids are compared by their text, not by their value: `1e2`, `100.0` and `100` are three ids. A
/// client writes an id in one way, in a request as in its cancellation, and gets the same text
/// back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number in the notation that the server would use too.
    Number(Number),
    /// A number in another notation, such as `1e2` or `-0`.
    Verbatim(VerbatimNumber),
    /// A string.
    Text(String),
}

/// A number in the notation of the client. It is valid JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerbatimNumber(Box<str>);

impl Serialize for VerbatimNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl RequestId {
    /// Parses the JSON of an id. Rejects an integer of more than 64 bits, because most clients
    /// could not read it in the response, and an id that is too long.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        if json.len() > MAX_ID_BYTES {
            return None;
        }
        if json.starts_with('"') {
            return serde_json::from_str(json).ok().map(Self::Text);
        }
        let number: Number = serde_json::from_str(json).ok()?;
        // An integer has only one notation.
        if !number.is_f64() || number.to_string() == json {
            return Some(Self::Number(number));
        }
        let is_readable = json.contains(['.', 'e', 'E']) || json == "-0";
        is_readable.then(|| Self::Verbatim(VerbatimNumber(json.into())))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Verbatim(VerbatimNumber(number)) => f.write_str(number),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get())
            .ok_or_else(|| D::Error::custom(format_args!("expected {ID_DESCRIPTION}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_notation() {
        for json in [
            "7",
            "-7",
            "0",
            "-0",
            "1e2",
            "1E+2",
            "100.0",
            "1.50",
            "0.1",
            "18446744073709551615",
            "\"a\"",
        ] {
            let id = RequestId::parse(json).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
            assert_eq!(id, serde_json::from_str(json).unwrap(), "{json}");
            assert_eq!(id.to_string(), json.trim_matches('"'));
        }
        for json in [
            "18446744073709551616",
            "01",
            "NaN",
            "null",
            "[1]",
            "",
            "\"a",
        ] {
            assert_eq!(RequestId::parse(json), None, "{json}");
        }
    }

    #[test]
    fn ids_are_compared_by_their_text() {
        let ids = ["1e2", "100.0", "100", "\"100\""].map(|json| RequestId::parse(json).unwrap());
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(ids.iter().position(|other| other == id), Some(at));
        }
    }
}
