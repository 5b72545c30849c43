//! HTTP requests: a message with its headers, valid or malformed.

use crate::json::odd;
use crate::message::{Message, STATELESS, Writer};
use crate::text::Text;

/// Targets of requests other than a POST of a message.
const TARGETS: [&str; 16] = [
    "/mcp",
    "/mcp?x=%ff",
    "/mcp/",
    "//mcp",
    "/%6dcp",
    "/mcp/../healthz",
    "/",
    "*",
    "/healthz",
    "/readyz",
    "/sse",
    "/messages?session=0",
    "/.well-known/oauth-protected-resource",
    "http://localhost/mcp",
    "http://evil.example/mcp",
    "http://a@localhost/mcp",
];

const METHODS: [&str; 10] = [
    "GET", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT", "post", "G\tT",
];

const VERSIONS: [&str; 6] = [
    "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "http/1.1", "",
];

/// Header values that are invalid in most headers.
const VALUES: [&[u8]; 12] = [
    b"",
    b" ",
    b"\xff\xfe",
    b"a, b, c",
    b"evil.example",
    b"localhost@evil.example",
    b"*/*;q=0",
    b"=?base64?w6k=?=",
    b"=?base64?!?=",
    b"2026-07-28",
    b"text/html",
    b"\x01",
];

/// Event IDs from which a client resumes a stream: valid, unknown and malformed ones.
const EVENT_IDS: [&str; 9] = [
    "0-0",
    "0-1",
    "1-0",
    "1-1",
    "2-3",
    "7-18446744073709551615",
    "-",
    "1-",
    "1-2-3",
];

/// A request over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) text: Text,
    /// True if its reply has no body.
    pub(crate) is_head: bool,
}

/// Returns a valid request with this message.
pub(crate) fn honest(message: Message) -> Request {
    let headers = headers(&message);
    let length = message.text.bytes("").len();
    let text =
        head("POST", "/mcp", "HTTP/1.1", headers).and(format!("Content-Length: {length}\r\n\r\n"));
    Request {
        text: text.then(message.text),
        is_head: false,
    }
}

impl Writer {
    /// Returns a random request.
    pub(crate) fn request(&mut self) -> Request {
        if self.chance(12) {
            return self.bare();
        }
        let message = if self.chance(7) {
            self.batch()
        } else {
            self.message(true)
        };
        let mut headers = headers(&message);
        if self.chance(20) {
            self.spoil(&mut headers);
        }
        let target = if self.chance(3) {
            self.one_of(&TARGETS)
        } else {
            "/mcp"
        };
        let version = if self.chance(3) {
            self.one_of(&VERSIONS)
        } else {
            "HTTP/1.1"
        };
        let head = head("POST", target, version, headers);
        Request {
            text: self.framed(head, message.text),
            is_head: false,
        }
    }

    /// Returns a request without a message: the stream of a session, its end, or an unknown target.
    fn bare(&mut self) -> Request {
        let method = if self.chance(60) {
            self.one_of(&["GET", "GET", "DELETE"])
        } else {
            self.one_of(&METHODS)
        };
        let target = if self.chance(60) {
            "/mcp"
        } else {
            self.one_of(&TARGETS)
        };
        let target = if self.chance(3) {
            format!("/{}", "x".repeat(70_000))
        } else {
            target.to_owned()
        };
        let mut headers = vec![
            ("Host", Text::new("localhost")),
            ("Accept", Text::new("text/event-stream")),
        ];
        if self.chance(80) {
            headers.push(("Mcp-Session-Id", Text::session()));
        }
        if self.chance(25) {
            headers.push(("Last-Event-ID", Text::new(self.one_of(&EVENT_IDS))));
        }
        if self.chance(20) {
            self.spoil(&mut headers);
        }
        let text = head(method, &target, "HTTP/1.1", headers).and("\r\n");
        Request {
            text,
            is_head: method == "HEAD",
        }
    }

    /// Makes one of the headers invalid, or adds one.
    fn spoil(&mut self, headers: &mut Vec<(&'static str, Text)>) {
        let at = self.random.usize(..headers.len());
        let value = if self.chance(15) {
            Text::repeated("x", self.one_of(&[300, 8000, 60_000, 70_000]))
        } else {
            Text::new(self.one_of(&VALUES.map(Some)).unwrap_or_default())
        };
        match self.random.u8(..8) {
            0 => drop(headers.remove(at)),
            1 => headers.extend(headers.get(at).cloned()),
            2 => {
                let named = headers.get(at).map_or("X", |(name, _)| name);
                headers.push((named, value));
            }
            3 => headers.push((
                "Origin",
                Text::new(self.one_of(&["http://evil.example", "null", "http://localhost"])),
            )),
            4 => headers.push(
                self.one_of(&[
                    Some("Expect"),
                    Some("Upgrade"),
                    Some("Connection"),
                    Some("TE"),
                ])
                .map_or_else(
                    || ("X", Text::default()),
                    |name| match name {
                        "Expect" => (name, Text::new("100-continue")),
                        "Upgrade" => (name, Text::new("h2c")),
                        "Connection" => (name, Text::new("close")),
                        name => (name, Text::new("trailers")),
                    },
                ),
            ),
            5 => {
                // Many small headers. The server accepts at most a hundred.
                let count = self.one_of(&[90, 101, 3000]);
                headers.push((
                    "X",
                    Text::new("a").then(Text::numbered("\r\nX-", ": b", count)),
                ));
            }
            _ => {
                if let Some((_, old)) = headers.get_mut(at) {
                    *old = value;
                }
            }
        }
    }

    /// Joins a head with its body. The stated length is correct most of the time.
    fn framed(&mut self, head: Text, body: Text) -> Text {
        let length = body.bytes("").len();
        if self.chance(70) {
            return head
                .and(format!("Content-Length: {length}\r\n\r\n"))
                .then(body);
        }
        if self.chance(40) {
            return self.chunked(head, body, length);
        }
        let lengths = match self.random.u8(..9) {
            0 => format!(
                "Content-Length: {length}\r\nContent-Length: {}\r\n",
                length + 1
            ),
            1 => format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"),
            2 => format!("Content-Length: {}\r\n", length + 7),
            3 => format!("Content-Length: {}\r\n", length / 2),
            4 => "Content-Length: -1\r\n".to_owned(),
            5 => "Content-Length: 99999999999999999999\r\n".to_owned(),
            6 => "Content-Length: 9000000000\r\n".to_owned(),
            7 => format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
            _ => String::new(),
        };
        head.and(lengths).and("\r\n").then(body)
    }

    /// Encodes a body in one chunk or many, which may be malformed.
    fn chunked(&mut self, head: Text, body: Text, length: usize) -> Text {
        let encoding = self.one_of(&[
            "chunked",
            "chunked",
            "chunked",
            "Chunked",
            "gzip, chunked",
            "chunked, gzip",
            "x",
        ]);
        let head = head.and(format!("Transfer-Encoding: {encoding}\r\n\r\n"));
        let whole = |head: Text, after: &str| {
            head.and(format!("{length:x}{after}\r\n"))
                .then(body.clone())
                .and("\r\n0\r\n\r\n")
        };
        match self.random.u8(..10) {
            0..4 => whole(head, ""),
            4 => whole(head, ";a=b"),
            5 => head
                .then(Text::new("1;").then(Text::repeated("x", 100_000)))
                .and("\r\na\r\n0\r\n\r\n"),
            6 => head
                .then(Text::repeated("1\r\n \r\n", 20_000))
                .then(whole(Text::default(), "")),
            7 => head.and("xyz\r\n").then(body),
            8 => head.and("ffffffffffffffffff\r\n").then(body),
            _ => head
                .and(format!("{length:x}\r\n"))
                .then(body)
                .and("no end of a chunk"),
        }
    }

    /// Returns bytes that are not an HTTP request.
    pub(crate) fn noise(&mut self) -> Request {
        const NOISE: [&[u8]; 8] = [
            b"\r\n\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET\r\n\r\n",
            b"\0\0\0\0\0\0\0\0",
            b"{\"jsonrpc\":\"2.0\"}\n",
            b"GET /mcp HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"SSH-2.0-a\r\n",
        ];
        let text = match self.random.u8(..3) {
            0 => Text::new("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ")
                .then(Text::repeated("x", 200_000)),
            1 => odd(&mut self.random),
            _ => Text::new(self.one_of(&NOISE.map(Some)).unwrap_or_default()),
        };
        Request {
            text,
            is_head: false,
        }
    }
}

/// Returns the headers of a message.
fn headers(message: &Message) -> Vec<(&'static str, Text)> {
    let mut headers = vec![
        ("Host", Text::new("localhost")),
        ("Content-Type", Text::new("application/json")),
        ("Accept", Text::new("application/json, text/event-stream")),
    ];
    if message.is_stateless {
        headers.push(("MCP-Protocol-Version", Text::new(STATELESS)));
        headers.push(("Mcp-Method", Text::new(&message.method)));
        headers.extend(
            message
                .tool
                .as_ref()
                .map(|tool| ("Mcp-Name", Text::new(tool))),
        );
        headers.extend(
            message
                .region
                .as_ref()
                .map(|region| ("Mcp-Param-Region", Text::new(region))),
        );
    } else if message.method != "initialize" {
        headers.push(("Mcp-Session-Id", Text::session()));
    }
    headers
}

/// Returns the request line and the headers, without the blank line that ends the head.
fn head(method: &str, target: &str, version: &str, headers: Vec<(&str, Text)>) -> Text {
    let mut text = Text::new(format!("{method} {target} {version}\r\n"));
    for (name, value) in headers {
        text = text.and(format!("{name}: ")).then(value).and("\r\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_request_has_the_length_of_its_body() {
        let mut writer = Writer::new(1);
        for _ in 0..50 {
            let message = writer.message(true);
            let body = message.text.bytes("");
            let request = honest(message).text.bytes("S");
            let head = String::from_utf8_lossy(&request[..request.len() - body.len()]).into_owned();
            assert!(
                head.ends_with(&format!("Content-Length: {}\r\n\r\n", body.len())),
                "{head}"
            );
            assert!(request.ends_with(&body));
        }
    }

    #[test]
    fn requests_are_of_many_kinds() {
        let mut writer = Writer::new(2);
        let all: Vec<String> = (0..2_000)
            .map(|_| writer.request().text.to_string())
            .collect();
        for part in [
            "GET /mcp",
            "DELETE",
            "chunked",
            "Content-Length: -1",
            "Origin: ",
            "initialize",
            "HTTP/1.0",
            "Expect",
        ] {
            assert!(all.iter().any(|text| text.contains(part)), "{part}");
        }
    }
}
