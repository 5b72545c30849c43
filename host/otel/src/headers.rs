//! Additional HTTP headers of export requests, mostly credentials.

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

/// Headers that the client sets itself.
const RESERVED_HEADERS: [HeaderName; 6] = [
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    TRANSFER_ENCODING,
    USER_AGENT,
];

/// Additional headers of each request. Their values are redacted in debug output.
#[derive(Clone, Debug, Default)]
pub struct ExportHeaders(HeaderMap);

impl ExportHeaders {
    /// Checks whether a header may have this name.
    ///
    /// # Errors
    ///
    /// Returns the reason if the name is invalid.
    pub fn check_name(name: &str) -> Result<(), String> {
        Self::parse_name(name).map(drop)
    }

    /// Adds a header. Replaces a header with the same name.
    ///
    /// # Errors
    ///
    /// Returns the reason if the name or the value is invalid. The message does not contain the
    /// value.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = Self::parse_name(name)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            format!("the value of {name:?} has a character that a header cannot have")
        })?;
        value.set_sensitive(true);
        self.0.insert(name, value);
        Ok(())
    }

    pub(crate) fn as_map(&self) -> &HeaderMap {
        &self.0
    }

    fn parse_name(name: &str) -> Result<HeaderName, String> {
        let parsed = HeaderName::try_from(name)
            .map_err(|_| format!("{name:?} is not the name of a header"))?;
        if RESERVED_HEADERS.contains(&parsed) {
            return Err(format!("the header {name:?} is set by the server itself"));
        }
        Ok(parsed)
    }
}

/// Parses names and values in the format of OpenTelemetry environment variables:
/// `name=value,name=value`, with separators percent-encoded.
///
/// # Errors
///
/// Returns the number of the part that has no name. The message does not contain the part, which
/// may be secret.
pub fn parse_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text
        .split(',')
        .enumerate()
        .filter(|(_, part)| !part.trim().is_empty());
    let decode = |text: &str| {
        percent_decode_str(text.trim())
            .decode_utf8_lossy()
            .into_owned()
    };
    parts
        .map(|(index, part)| {
            let (name, value) = part
                .split_once('=')
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| {
                    format!(
                        "expected NAME=VALUE and commas in between; part {} is something else",
                        index + 1
                    )
                })?;
            Ok((decode(name), decode(value)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_separated_by_commas_and_decoded() {
        let parse = |text| {
            parse_pairs(text)
                .unwrap()
                .into_iter()
                .map(|(n, v)| format!("{n}:{v}"))
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(parse("a=1, b = x%2Cy%3D%20z ,c="), "a:1|b:x,y= z|c:");
        assert_eq!(
            parse("authorization=Basic%20YTpi==,"),
            "authorization:Basic YTpi=="
        );
        assert_eq!(parse(""), "");
        for wrong in ["s3cret", "a=1,s3cret", "=s3cret"] {
            let message = parse_pairs(wrong).unwrap_err();
            assert!(
                message.starts_with("expected NAME=VALUE") && !message.contains("s3cret"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_value_is_shown_nowhere() {
        let mut headers = ExportHeaders::default();
        headers.add("X-Key", "s3cret").unwrap();
        let debug_outputs = [
            format!("{headers:?}"),
            headers.add("x-key", "s3cret\n").unwrap_err(),
            headers.add("x key", "s3cret").unwrap_err(),
            headers.add("Host", "s3cret").unwrap_err(),
        ];
        assert!(
            !debug_outputs.join("").contains("s3cret"),
            "{debug_outputs:?}"
        );
        assert_eq!(headers.as_map()["x-key"], "s3cret");
    }
}
