//! Reads HTTP response bodies: a JSON message, or server-sent events with a message each.

use crate::event_splitter::EventSplitter;

/// Incremental reader of a response body.
#[derive(Debug)]
pub struct ResponseReader(BodyKind);

#[derive(Debug)]
enum BodyKind {
    /// One JSON message, as received so far.
    Json(Vec<u8>),
    /// Server-sent events.
    Events(EventSplitter),
    /// Any other content, which is only shown to people.
    Other(Vec<u8>),
}

/// Maximum retained size of a body that carries no message, in bytes.
const MAX_OTHER_BODY_BYTES: usize = 512;

impl ResponseReader {
    /// Creates a reader for a response with these headers.
    ///
    /// # Errors
    ///
    /// Returns an error, addressed to the guest's author, if the encoding is not supported.
    pub fn new(content_type: Option<&str>, content_encoding: Option<&str>) -> Result<Self, String> {
        if let Some(encoding) =
            content_encoding.filter(|encoding| !encoding.trim().eq_ignore_ascii_case("identity"))
        {
            return Err(format!(
                "its response is encoded ({encoding}), which was not requested"
            ));
        }
        let essence = content_type
            .and_then(|value| value.split(';').next())
            .unwrap_or_default()
            .trim();
        Ok(Self(if essence.eq_ignore_ascii_case("text/event-stream") {
            BodyKind::Events(EventSplitter::default())
        } else if essence.eq_ignore_ascii_case("application/json") {
            BodyKind::Json(Vec::new())
        } else {
            BodyKind::Other(Vec::new())
        }))
    }

    /// Returns whether the body can carry messages.
    pub fn carries_messages(&self) -> bool {
        !matches!(self.0, BodyKind::Other(_))
    }

    /// Adds bytes. Returns the messages that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        match &mut self.0 {
            BodyKind::Json(body) => {
                body.extend_from_slice(bytes);
                Vec::new()
            }
            BodyKind::Events(events) => events
                .push(bytes)
                .into_iter()
                .filter(|data| !data.is_empty())
                .collect(),
            BodyKind::Other(body) => {
                let remaining = MAX_OTHER_BODY_BYTES.saturating_sub(body.len());
                body.extend_from_slice(bytes.get(..remaining).unwrap_or(bytes));
                Vec::new()
            }
        }
    }

    /// Ends the body. Returns the message if the body is one JSON message.
    pub fn finish(&mut self) -> Option<String> {
        match &mut self.0 {
            BodyKind::Json(body) => {
                let text = String::from_utf8(std::mem::take(body));
                let text = text
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                Some(text).filter(|text| !text.trim().is_empty())
            }
            BodyKind::Events(_) | BodyKind::Other(_) => None,
        }
    }

    /// Returns the beginning of a body that carries no message.
    pub fn body_excerpt(&self) -> String {
        match &self.0 {
            BodyKind::Json(body) | BodyKind::Other(body) => {
                String::from_utf8_lossy(body.get(..MAX_OTHER_BODY_BYTES).unwrap_or(body))
                    .into_owned()
            }
            BodyKind::Events(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_message_or_several() {
        let mut json =
            ResponseReader::new(Some("Application/JSON; charset=utf-8"), Some("identity")).unwrap();
        assert!(json.push(b"{\"a\"").is_empty() && json.push(b":1}").is_empty());
        assert_eq!(json.finish().as_deref(), Some("{\"a\":1}"));
        let mut events = ResponseReader::new(Some("text/event-stream"), None).unwrap();
        assert_eq!(
            events.push(b"data:\n\ndata: a\n\ndata: b\n\nda"),
            ["a", "b"]
        );
        assert_eq!(events.finish(), None);
        let mut empty = ResponseReader::new(Some("application/json"), None).unwrap();
        assert_eq!(empty.finish(), None);
    }

    #[test]
    fn a_body_without_a_message_is_only_quoted() {
        let mut page = ResponseReader::new(Some("text/html"), None).unwrap();
        assert!(page.push("<h1>".repeat(1000).as_bytes()).is_empty());
        assert_eq!(
            (page.body_excerpt().len(), page.finish()),
            (MAX_OTHER_BODY_BYTES, None)
        );
        let encoded = ResponseReader::new(Some("application/json"), Some("gzip")).unwrap_err();
        assert!(encoded.contains("gzip"), "{encoded}");
    }
}
