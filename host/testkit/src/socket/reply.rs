//! An HTTP/1 reply, parsed from the bytes that have arrived.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::message;

/// Maximum number of headers in a reply.
const MAX_REPLY_HEADERS: usize = 64;

/// A reply, which may be incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, with the chunked transfer coding removed.
    pub body: Vec<u8>,
    /// True if the whole reply has arrived. Always false for a reply without a length, which
    /// continues until the connection ends.
    pub is_complete: bool,
}

impl HttpReply {
    /// Parses the reply at the beginning of `bytes`. Returns the reply and its length, or `None` if
    /// the head is not complete. If `to_head` is set, the request method was HEAD, and the reply
    /// has no body.
    ///
    /// # Errors
    ///
    /// Fails with a description of the problem if `bytes` are not HTTP.
    pub fn parse(bytes: &[u8], to_head: bool) -> Result<Option<(Self, usize)>, String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_REPLY_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let head = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(format!("{error}: {}", bytes.escape_ascii())),
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = parsed
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), text(header.value)));
        let status = parsed.code.unwrap_or_default();
        let mut reply = Self {
            status,
            headers: headers.collect(),
            body: Vec::new(),
            is_complete: true,
        };
        let rest = bytes.get(head..).unwrap_or_default();
        let length = if to_head || status < 200 || matches!(status, 204 | 304) {
            0
        } else if reply.header("transfer-encoding") == Some("chunked") {
            reply.parse_chunks(rest)?
        } else if let Some(length) = reply.header("content-length") {
            let length: usize = length
                .parse()
                .map_err(|_| format!("a Content-Length of {length:?}"))?;
            reply.is_complete = rest.len() >= length;
            reply.body = rest.get(..length).unwrap_or(rest).to_vec();
            length
        } else {
            reply.is_complete = false;
            reply.body = rest.to_vec();
            rest.len()
        };
        Ok(Some((reply, head + length)))
    }

    /// Parses the chunks of the body and returns their total length.
    fn parse_chunks(&mut self, mut rest: &[u8]) -> Result<usize, String> {
        let all = rest.len();
        loop {
            let (begin, length) = match httparse::parse_chunk_size(rest) {
                Ok(httparse::Status::Complete(found)) => found,
                Ok(httparse::Status::Partial) => break,
                Err(_) => return Err(format!("no chunk: {}", rest.escape_ascii())),
            };
            let length =
                usize::try_from(length).map_err(|_| "a chunk without an end".to_owned())?;
            let chunk = rest.get(begin..).unwrap_or_default();
            let Some(end) = chunk.get(length..) else {
                self.body.extend_from_slice(chunk);
                break;
            };
            self.body
                .extend_from_slice(chunk.get(..length).unwrap_or_default());
            let Some(after) = end.strip_prefix(b"\r\n") else {
                if end.len() < 2 {
                    break;
                }
                return Err("a chunk that is longer than it says".to_owned());
            };
            rest = after;
            if length == 0 {
                return Ok(all - rest.len());
            }
        }
        self.is_complete = false;
        Ok(all)
    }

    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns the messages in the body: one for a JSON body, and one for each complete event of an
    /// event stream. Returns none for other bodies.
    ///
    /// # Errors
    ///
    /// Fails if a message is not JSON-RPC or an event has an unexpected type.
    pub fn messages(&self) -> Result<Vec<Value>> {
        if self.is_stream() {
            let text = std::str::from_utf8(&self.body).or_else(|error| {
                // The last character may be incomplete.
                let valid = self.body.get(..error.valid_up_to()).unwrap_or_default();
                if error.error_len().is_some() {
                    Err(error)
                } else {
                    std::str::from_utf8(valid)
                }
            });
            return parse_events(text.context("a stream is not UTF-8")?);
        }
        let is_json = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/json"));
        if is_json && self.is_complete {
            Ok(vec![message::parse_line(&self.body)?])
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns the response to the request.
    ///
    /// # Errors
    ///
    /// Fails if there is no response or a message is not JSON-RPC.
    pub fn response_message(&self) -> Result<Value> {
        let last = self
            .messages()?
            .pop()
            .filter(|message| message.get("method").is_none());
        last.with_context(|| {
            format!(
                "status {}, and no answer: {}",
                self.status,
                self.body.escape_ascii()
            )
        })
    }
}

fn parse_events(text: &str) -> Result<Vec<Value>> {
    let mut messages = Vec::new();
    let Some((whole, _)) = text.rsplit_once("\n\n") else {
        return Ok(messages);
    };
    for event in whole.split("\n\n") {
        let field = |name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim_start)
        };
        match (field("event:"), field("data:")) {
            (Some("message"), Some(data)) => messages.push(message::parse_line(data.as_bytes())?),
            (None, None) if event.lines().all(|line| line.starts_with(':')) => {}
            // The first event of a stream that the client can resume.
            (None, Some("")) if field("id:").is_some_and(|id| !id.is_empty()) => {}
            // The event of the HTTP+SSE transport (revision 2024-11-05) that contains the URL for
            // messages.
            (Some("endpoint"), Some(_)) => {}
            _ => bail!("an event of another kind: {event:?}"),
        }
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_whole_or_not_wherever_it_is_cut() {
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nMcp-Session-Id: A\r\n\r\nhello";
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        for text in [sized, chunked] {
            let next = format!("{text}HTTP/1.1");
            let (reply, length) = HttpReply::parse(next.as_bytes(), false).unwrap().unwrap();
            assert_eq!(
                (reply.body.as_slice(), length, reply.is_complete),
                (b"hello".as_slice(), text.len(), true)
            );
            for cut in 0..text.len() {
                if let Some((reply, _)) = HttpReply::parse(&text.as_bytes()[..cut], false).unwrap()
                {
                    assert!(
                        !reply.is_complete && b"hello".starts_with(&reply.body),
                        "{cut}"
                    );
                }
            }
        }
        let (reply, length) = HttpReply::parse(sized.as_bytes(), true).unwrap().unwrap();
        assert_eq!(
            (reply.is_complete, length),
            (true, sized.len() - 5),
            "the answer to a HEAD"
        );
        assert_eq!(reply.header("mcp-session-id"), Some("A"));
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        for text in [
            "hello\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nlonger\r\n",
        ] {
            HttpReply::parse(text.as_bytes(), false).unwrap_err();
        }
    }

    fn reply(kind: &str, body: &str) -> HttpReply {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        HttpReply {
            status: 200,
            headers,
            body: body.as_bytes().to_vec(),
            is_complete: true,
        }
    }

    #[test]
    fn messages_are_taken_from_json_and_from_whole_events() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        assert_eq!(
            reply("application/json", answer)
                .response_message()
                .unwrap()["id"],
            1
        );
        let stream = format!(
            ":\n\nid: 1-0\nretry: 1000\ndata:\n\nevent: message\ndata: {note}\n\nevent: message\ndata: {answer}\n\nevent: mess"
        );
        let stream = reply("text/event-stream", &stream);
        assert_eq!(
            (
                stream.messages().unwrap().len(),
                &stream.response_message().unwrap()["id"]
            ),
            (2, &Value::from(1))
        );
        assert!(reply("text/plain", "no").messages().unwrap().is_empty());
        assert!(reply("text/plain", "no").response_message().is_err());
        assert!(reply("application/json", "no").messages().is_err());
        assert!(
            reply("text/event-stream", "event: other\ndata: {}\n\n")
                .messages()
                .is_err()
        );
        assert!(
            reply(
                "text/event-stream",
                &format!("event: message\ndata: {note}\n\n")
            )
            .response_message()
            .is_err()
        );
    }
}
