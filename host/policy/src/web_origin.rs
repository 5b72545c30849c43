//! The origins that a view may access: the entries of `permissions.ui`.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::host::NormalizedHost;
use crate::host_pattern::HostPattern;
use crate::origin_pattern::OriginPattern;

/// The schemes of `WebSocket`s, each with the HTTP scheme that has the same default port.
const WEBSOCKET_SCHEMES: [(&str, &str); 2] = [("wss://", "https://"), ("ws://", "http://")];

/// Maximum size of an origin, in bytes. A host has at most 255, and longer texts are rejected
/// before they are parsed.
const MAX_ORIGIN_BYTES: usize = 300;

/// Origins that a view may access: `https://api.example.com`, `https://*.example.org`,
/// `wss://live.example.com`.
///
/// The text of an origin is exactly one source of a Content Security Policy (CSP Level 3, section
/// 2.3.1). It contains no character that ends a source or a directive, and it is never a keyword
/// such as `'unsafe-inline'`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebOrigin {
    /// True if the scheme is `wss` or `ws`.
    is_websocket: bool,
    /// The origin with the corresponding HTTP scheme.
    origin: OriginPattern,
}

impl WebOrigin {
    /// Parses an entry.
    ///
    /// # Errors
    ///
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_ORIGIN_BYTES {
            let start: String = text.chars().take(20).collect();
            return Err(format!(
                "{:?} has more than {MAX_ORIGIN_BYTES} bytes",
                format!("{start}…")
            ));
        }
        let schemes = WEBSOCKET_SCHEMES
            .into_iter()
            .find(|(scheme, _)| starts_with_ignore_case(text, scheme));
        let origin = match schemes {
            None => OriginPattern::parse(text).map_err(|why| {
                let http_message = "must begin with \"https://\" or \"http://\"";
                why.replace(
                    http_message,
                    "must begin with \"https://\", \"http://\", \"wss://\" or \"ws://\"",
                )
            }),
            Some((websocket_scheme, http_scheme)) => {
                let rest = text.get(websocket_scheme.len()..).unwrap_or_default();
                OriginPattern::parse(&format!("{http_scheme}{rest}"))
                    .map_err(|why| why.replace(http_scheme, websocket_scheme))
            }
        };
        let origin = origin.map_err(|why| match why.split_once("; put the path into") {
            Some((start, _)) => format!("{start}, and a view gets whole origins; leave it out"),
            None => why,
        })?;
        if matches!(
            origin.host(),
            HostPattern::Exact(NormalizedHost::Ip(IpAddr::V6(_)))
        ) {
            return Err(format!(
                "{text:?} is an IPv6 address, which no Content Security Policy can name; use a name"
            ));
        }
        Ok(Self {
            is_websocket: schemes.is_some(),
            origin,
        })
    }

    /// Returns whether the scheme is `wss` or `ws`.
    pub fn is_websocket(&self) -> bool {
        self.is_websocket
    }

    /// Returns whether this origin covers every origin that the other covers.
    pub fn covers_all_of(&self, other: &Self) -> bool {
        self.is_websocket == other.is_websocket && self.origin.covers_all_of(&other.origin)
    }
}

/// Returns whether the text starts with `beginning`, ignoring ASCII case.
fn starts_with_ignore_case(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

/// Formats the canonical form, which [`WebOrigin::parse`] accepts.
impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.origin.to_string();
        match WEBSOCKET_SCHEMES
            .into_iter()
            .find(|(_, http)| self.is_websocket && text.starts_with(http))
        {
            Some((websocket_scheme, http_scheme)) => {
                write!(
                    f,
                    "{websocket_scheme}{}",
                    text.get(http_scheme.len()..).unwrap_or_default()
                )
            }
            None => f.write_str(&text),
        }
    }
}

impl TryFrom<String> for WebOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<WebOrigin> for String {
    fn from(origin: WebOrigin) -> Self {
        origin.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_canonical_form() {
        for (text, canonical) in [
            ("https://API.example.com", "https://api.example.com"),
            ("HTTPS://api.example.com:443", "https://api.example.com"),
            ("https://*.example.com", "https://*.example.com"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("wss://live.example.com", "wss://live.example.com"),
            ("WS://127.0.0.1:81", "ws://127.0.0.1:81"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
        ] {
            let origin = WebOrigin::parse(text).unwrap();
            assert_eq!(origin.to_string(), canonical);
            assert_eq!(WebOrigin::parse(canonical), Ok(origin));
        }
    }

    #[test]
    fn what_is_more_than_an_origin_is_refused() {
        let long = format!("https://{}.example.com", "a".repeat(400));
        let texts = [
            "*",
            "https:",
            "https://*",
            "https://*.com",
            "wss://*",
            "'self'",
            "'unsafe-inline'",
            "'none'",
            "data:",
            "blob:",
            "javascript://api.example.com",
            "file:///etc/passwd",
            "https://a.example.com; script-src *",
            "https://a.example.com 'unsafe-eval'",
            "https://a.example.com,https://b.example.com",
            "https://a.example.com\nscript-src *",
            "https://a.example.com/path",
            "wss://a.example.com/",
            "wss://user@a.example.com",
            "http://[::1]:8080",
            "a.example.com",
            "",
            &long,
        ];
        let messages: Vec<String> = texts
            .iter()
            .map(|text| WebOrigin::parse(text).unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }
}
