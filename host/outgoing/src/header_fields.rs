//! Header fields.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Maximum size of the head of a request or a response, in bytes.
pub(crate) const MAX_HTTP_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of fields of a response.
pub(crate) const MAX_RESPONSE_FIELDS: usize = 100;

/// Fields that apply to one connection (RFC 9110, section 7.6.1), and the fields that frame
/// messages in HTTP/1.1. The host manages the connections, so it sets these fields itself.
const HOP_BY_HOP_FIELDS: [HeaderName; 5] = [
    header::CONNECTION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Returns whether only the client may set a field: it applies to one connection or to a proxy, or
/// it frames or routes the message.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    HOP_BY_HOP_FIELDS.contains(name)
        || is_of_proxies(name)
        || [header::CONTENT_LENGTH, header::HOST].contains(name)
}

fn is_of_proxies(name: &HeaderName) -> bool {
    name.as_str().starts_with("proxy-") || name.as_str() == "http2-settings"
}

/// Removes fields that apply to one connection: the fields of [`HOP_BY_HOP_FIELDS`], those that
/// `Connection` lists, and those for proxies.
pub(crate) fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let listed = |value: &HeaderValue| -> Vec<HeaderName> {
        let names = value.as_bytes().split(|byte| *byte == b',');
        names
            .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
            .collect()
    };
    let mut names: Vec<HeaderName> = fields
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(listed)
        .collect();
    // Otherwise a request whose `Connection` lists these would lose fields that the host checks or
    // adds.
    names.retain(|name| {
        ![header::CONTENT_LENGTH, header::HOST, header::AUTHORIZATION].contains(name)
    });
    names.extend(fields.keys().filter(|name| is_of_proxies(name)).cloned());
    for name in names.iter().chain(&HOP_BY_HOP_FIELDS) {
        fields.remove(name);
    }
}

/// Parses one value of `Content-Length`, which consists of digits.
pub fn parse_content_length(value: &HeaderValue) -> Option<u64> {
    let digits = value
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Returns the size of fields in HTTP/1.1, in bytes: `name: value` with its line ending.
pub(crate) fn encoded_bytes(fields: &HeaderMap) -> usize {
    fields
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum()
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderMap, HeaderValue};

    use super::{encoded_bytes, remove_hop_by_hop};

    #[test]
    fn what_is_about_one_connection_is_removed() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("accept", "*/*"),
            ("authorization", "Bearer x"),
            ("connection", "close, X-Secret-Of-The-Hop"),
            ("connection", "authorization,content-length"),
            ("content-length", "5"),
            ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-secret-of-the-hop", "1"),
        ] {
            fields.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut fields);
        let left: Vec<&str> = fields.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(left, ["accept", "authorization", "content-length"]);
        assert_eq!(
            encoded_bytes(&fields),
            "accept: */*\r\nauthorization: Bearer x\r\ncontent-length: 5\r\n".len()
        );
    }

    #[test]
    fn no_value_ends_a_line() {
        for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b"] {
            assert!(
                HeaderValue::from_bytes(value.as_bytes()).is_err(),
                "{value:?}"
            );
            assert!(value.parse::<HeaderValue>().is_err(), "{value:?}");
        }
    }
}
