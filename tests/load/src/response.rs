//! Parses HTTP responses from the received bytes of a connection.

use anyhow::{Context, Result, bail, ensure};

/// A complete response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The session ID in its headers.
    pub(crate) session: Option<String>,
    /// Its message, or the last message of an event stream; empty if it has none.
    pub(crate) message: Vec<u8>,
    /// Its length in bytes.
    pub(crate) length: usize,
}

/// The relevant headers.
#[derive(Default)]
struct Head {
    session: Option<String>,
    length: Option<usize>,
    is_chunked: bool,
    is_stream: bool,
}

/// Returns the response at the start of `bytes`, if it is complete.
pub(crate) fn take(bytes: &[u8]) -> Result<Option<Response>> {
    let mut headers = [httparse::EMPTY_HEADER; 48];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = parsed.parse(bytes).context("not an HTTP response")?
    else {
        return Ok(None);
    };
    let status = parsed.code.context("no status")?;
    let head = Head::of(parsed.headers)?;
    let rest = bytes.get(start..).unwrap_or_default();
    let (body, taken) = if head.is_chunked {
        let Some(whole) = dechunked(rest)? else {
            return Ok(None);
        };
        whole
    } else {
        let length = head.length.unwrap_or_default();
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        (body.to_vec(), length)
    };
    let message = if head.is_stream {
        last_event(&body)?
    } else {
        body
    };
    Ok(Some(Response {
        status,
        session: head.session,
        message,
        length: start + taken,
    }))
}

impl Head {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self> {
        let mut head = Self::default();
        for header in headers {
            let value = || {
                std::str::from_utf8(header.value)
                    .with_context(|| format!("{} is not text", header.name))
            };
            match header.name.to_ascii_lowercase().as_str() {
                "mcp-session-id" => head.session = Some(value()?.to_owned()),
                "content-length" => {
                    head.length = Some(value()?.trim().parse().context("a wrong length")?);
                }
                "transfer-encoding" => head.is_chunked = value()?.eq_ignore_ascii_case("chunked"),
                "content-type" => head.is_stream = value()?.starts_with("text/event-stream"),
                _ => {}
            }
        }
        Ok(head)
    }
}

/// Decodes a chunked body. Returns it with its encoded length, if it is complete.
fn dechunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let size = httparse::parse_chunk_size(rest)
            .map_err(|_| anyhow::anyhow!("a chunk without its size"))?;
        let httparse::Status::Complete((start, size)) = size else {
            return Ok(None);
        };
        let size = usize::try_from(size)?;
        let Some(chunk) = rest.get(start..start + size) else {
            return Ok(None);
        };
        // A line end follows each chunk. The servers here send no trailers.
        let Some(end) = rest.get(start + size..start + size + 2) else {
            return Ok(None);
        };
        ensure!(end == b"\r\n", "a chunk without its end");
        body.extend_from_slice(chunk);
        at += start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// Returns the data of the last event that has any: the response, which ends a stream.
fn last_event(body: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(body).context("a stream that is not text")?;
    let data = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(str::trim_start);
    let Some(last) = data.rev().find(|data| !data.is_empty()) else {
        bail!("a stream without an answer")
    };
    Ok(last.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_taken_when_it_is_whole() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: a\r\n\r\n{}HTTP/1.1";
        let whole = take(plain).unwrap().unwrap();
        assert_eq!(
            (whole.message.as_slice(), whole.session.as_deref()),
            (b"{}".as_slice(), Some("a"))
        );
        assert_eq!(whole.length, plain.len() - 8);
        let streamed = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
            8\r\ndata: \n\n\r\n13\r\nid: 1\ndata: {\"a\":1}\r\n2\r\n\n\n\r\n0\r\n\r\n";
        let whole = take(streamed).unwrap().unwrap();
        assert_eq!(
            (whole.message.as_slice(), whole.length),
            (b"{\"a\":1}".as_slice(), streamed.len())
        );
        for whole in [
            plain.strip_suffix(b"}HTTP/1.1").unwrap(),
            streamed.as_slice(),
        ] {
            for end in 0..whole.len() {
                assert_eq!(take(&whole[..end]).unwrap(), None, "{end} bytes");
            }
        }
        let none = take(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!((none.status, none.message.len()), (202, 0));
        assert!(take(b"hello there\r\n\r\n").is_err());
    }
}
