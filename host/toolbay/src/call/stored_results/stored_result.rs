//! Whole results, as they are stored and read.

use std::fmt;

use bytes::Bytes;
use serde_json::Map;
use toolbay_model::{EmbeddedResource, ResourceContent, ResourceItem};

use super::result_uri::{ResultAddress, ResultPortion};

/// A result that was too large, as a list of parts.
#[derive(Debug)]
pub(crate) struct WholeResult {
    parts: Vec<StoredPart>,
    size: usize,
}

/// A part of a result: text, media or JSON.
#[derive(Debug)]
pub(crate) struct StoredPart {
    mime_type: Option<String>,
    bytes: Bytes,
    /// True if the bytes are UTF-8.
    is_text: bool,
}

/// Reasons why a portion of a result cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingPart {
    /// There is no part with this number; the result has `parts`.
    Part { parts: usize },
    /// The offset is beyond the end; the part has `size` bytes.
    Offset { size: usize },
    /// A portion was requested of a result with several parts.
    Several,
    /// The requested portion is invalid.
    Portion,
}

impl StoredPart {
    /// Creates a text part, and shrinks its memory to the length of the text.
    pub(crate) fn text(mime_type: Option<String>, text: String) -> Self {
        Self {
            mime_type,
            bytes: Bytes::from(text.into_boxed_str().into_boxed_bytes()),
            is_text: true,
        }
    }

    /// Creates a part of bytes that are not text.
    pub(crate) fn media(mime_type: Option<String>, bytes: Bytes) -> Self {
        Self {
            mime_type,
            bytes,
            is_text: false,
        }
    }

    /// Returns the MIME type, if known.
    pub(crate) fn mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// Reads at most `length` bytes, from `offset`. A text is cut at character boundaries, and has
    /// at least one character.
    fn read(&self, uri: String, portion: ResultPortion) -> Result<ResourceItem, MissingPart> {
        let size = self.bytes.len();
        let from = portion.offset.unwrap_or(0);
        if from > size {
            return Err(MissingPart::Offset { size });
        }
        let to = portion
            .length
            .map_or(size, |length| from.saturating_add(length).min(size));
        let content = if self.is_text {
            ResourceContent::Text(text_between(&self.bytes, from, to))
        } else {
            ResourceContent::Blob(self.bytes.slice(from..to))
        };
        let resource = EmbeddedResource {
            uri,
            mime_type: self.mime_type.clone(),
            content,
        };
        Ok(ResourceItem {
            resource,
            meta: Map::new(),
        })
    }
}

/// Returns the text from the character that contains byte `from` up to the one that contains byte
/// `to`, exclusive.
fn text_between(bytes: &[u8], from: usize, to: usize) -> String {
    let begins = |at: usize| bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let back = |mut at: usize| {
        while !begins(at) {
            at -= 1;
        }
        at
    };
    let wanted = to > from;
    let from = back(from);
    let mut to = back(to);
    if to == from && wanted {
        // The character is longer than the requested length.
        to = (from + 1..=bytes.len())
            .find(|at| begins(*at))
            .unwrap_or(from);
    }
    String::from_utf8_lossy(bytes.get(from..to).unwrap_or_default()).into_owned()
}

impl WholeResult {
    /// Creates a result from these parts.
    pub(crate) fn new(parts: Vec<StoredPart>) -> Self {
        let named = |part: &StoredPart| {
            part.mime_type.as_ref().map_or(0, String::len) + size_of::<StoredPart>()
        };
        let size = parts
            .iter()
            .map(|part| part.bytes.len() + named(part))
            .sum();
        Self { parts, size }
    }

    /// Returns the number of parts.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns the memory that the result takes, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the total size of its texts and media, in bytes.
    pub(crate) fn content_size(&self) -> usize {
        self.parts.iter().map(|part| part.bytes.len()).sum()
    }

    /// Returns the MIME type, if the result has exactly one part.
    pub(crate) fn mime_type(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => part.mime_type(),
            _ => None,
        }
    }

    /// Returns the number of bytes in the portion.
    pub(crate) fn readable_size(&self, portion: ResultPortion) -> usize {
        let all = match portion.part {
            Some(part) => self.parts.get(part).map_or(0, |part| part.bytes.len()),
            None => self.size,
        };
        all.min(portion.length.unwrap_or(usize::MAX))
    }

    /// Reads a portion of the result. `uri` consists of `address` and `portion`.
    ///
    /// # Errors
    ///
    /// The result does not have this portion.
    pub(crate) fn read(
        &self,
        uri: &str,
        address: &ResultAddress,
        portion: ResultPortion,
    ) -> Result<Vec<ResourceItem>, MissingPart> {
        let parts = self.parts.len();
        match (portion.part, self.parts.as_slice()) {
            (Some(part), all) => {
                let part = all.get(part).ok_or(MissingPart::Part { parts })?;
                Ok(vec![part.read(uri.to_owned(), portion)?])
            }
            (None, [only]) => Ok(vec![only.read(uri.to_owned(), portion)?]),
            (None, _) if portion != ResultPortion::default() => Err(MissingPart::Several),
            (None, all) => all
                .iter()
                .enumerate()
                .map(|(n, part)| part.read(address.part_uri(n), portion))
                .collect(),
        }
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Portion => {
                write!(
                    f,
                    "what follows the result's address is invalid; append /0 for its first part, and ?offset=0&length=1000 for some of its bytes"
                )
            }
            Self::Part { parts: 1 } => write!(f, "the result has only part 0"),
            Self::Part { parts } => write!(
                f,
                "the result has the parts 0 to {}",
                parts.saturating_sub(1)
            ),
            Self::Offset { size } => write!(f, "offset: this part of the result has {size} bytes"),
            Self::Several => {
                write!(
                    f,
                    "offset and length: the result has several parts; add the number of one to the URI, such as /0"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(whole: &WholeResult, uri: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let (address, portion) = ResultAddress::parse(uri).unwrap();
        let items = whole
            .read(uri, &address, portion.unwrap())
            .map_err(|why| why.to_string())?;
        let item = |item: ResourceItem| match item.resource.content {
            ResourceContent::Text(text) => (item.resource.uri, text.into_bytes()),
            ResourceContent::Blob(bytes) => (item.resource.uri, bytes.to_vec()),
        };
        Ok(items.into_iter().map(item).collect())
    }

    #[test]
    fn a_result_of_one_part_is_read_whole_or_in_portions_of_characters() {
        let whole = WholeResult::new(vec![StoredPart::text(None, "aé€z".to_owned())]);
        let base = ResultAddress::new().unwrap().to_string();
        let text = |query: &str| {
            let items = read(&whole, &format!("{base}{query}")).unwrap();
            String::from_utf8(items[0].1.clone()).unwrap()
        };
        assert_eq!(text(""), "aé€z");
        assert_eq!(text("/0"), "aé€z");
        assert_eq!(text("?offset=1&length=2"), "é");
        assert_eq!(
            text("?offset=1&length=4"),
            "é",
            "what is cut in the middle is left out"
        );
        assert_eq!(text("?offset=2&length=1"), "é", "a character is never lost");
        assert_eq!(text("?offset=3&length=1"), "€");
        assert_eq!(text("?offset=6"), "z");
        assert_eq!(text("?offset=7"), "");
        assert_eq!(text("?offset=0&length=0"), "");
        assert_eq!(text("?length=999999"), "aé€z");
        assert_eq!(
            read(&whole, &format!("{base}?offset=8")).unwrap_err(),
            "offset: this part of the result has 7 bytes"
        );
        assert_eq!(
            read(&whole, &format!("{base}/1")).unwrap_err(),
            "the result has only part 0"
        );
        // Reading on from the end of each portion returns the whole text.
        let mut all = String::new();
        while all.len() < 7 {
            all += &text(&format!("?offset={}&length=1", all.len()));
        }
        assert_eq!(all, "aé€z");
    }

    #[test]
    fn a_result_of_several_parts_is_read_in_items() {
        let parts = vec![
            StoredPart::text(Some("application/json".into()), "{}".into()),
            StoredPart::media(None, Bytes::from_static(&[1, 2, 3])),
        ];
        let whole = WholeResult::new(parts);
        let base = ResultAddress::new().unwrap().to_string();
        assert_eq!(
            read(&whole, &base).unwrap(),
            [
                (format!("{base}/0"), b"{}".to_vec()),
                (format!("{base}/1"), vec![1, 2, 3])
            ]
        );
        let uri = format!("{base}/1?offset=1&length=1");
        assert_eq!(read(&whole, &uri).unwrap(), [(uri.clone(), vec![2])]);
        assert!(
            read(&whole, &format!("{base}?offset=1"))
                .unwrap_err()
                .starts_with("offset and length: the result has several")
        );
        assert_eq!(
            read(&whole, &format!("{base}/2")).unwrap_err(),
            "the result has the parts 0 to 1"
        );
    }
}
