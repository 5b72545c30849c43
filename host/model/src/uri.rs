//! Validation and normalization of URIs (RFC 3986).

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// Schemes whose URIs require a host. The URI parsers of clients reject such URIs without a host.
const SCHEMES_WITH_HOST: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Checks the authority of an absolute URI, such as `example.com:80` in `http://example.com:80/a`.
///
/// # Errors
///
/// Returns an error if the authority is invalid. The message is the end of a sentence that begins
/// with the URI.
pub fn check_authority(uri: &str) -> Result<(), String> {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Ok(());
    };
    let needs_host = SCHEMES_WITH_HOST
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let Some(authority) = authority(rest) else {
        return if needs_host {
            Err(format!("has no host: write \"{scheme}://HOST/\""))
        } else {
            Ok(())
        };
    };
    let host_and_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, rest)| rest);
    let (host, port) = if let Some(inner) = host_and_port.strip_prefix('[') {
        let Some((address, after)) = inner.split_once(']') else {
            return Err("has an address that begins with \"[\" and does not end with \"]\"".into());
        };
        if !is_ip_literal(address) {
            return Err(format!(
                "has the address [{address}], which is not an IPv6 address"
            ));
        }
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err("has something other than a port after \"]\"".into()),
        };
        (address, port)
    } else {
        match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_and_port, None),
        }
    };
    if let Some(port) = port.filter(|port| !port.is_empty()) {
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || port.parse::<u16>().is_err() {
            return Err(format!(
                "has the port {port:?}, which is not a number up to 65535"
            ));
        }
    }
    if host.contains(['[', ']']) {
        return Err(
            "has \"[\" or \"]\" in its host, where only an IPv6 address can have them".into(),
        );
    }
    if host.is_empty() && (needs_host || port.is_some()) {
        return Err(format!("has no host: write \"{scheme}://HOST/\""));
    }
    Ok(())
}

/// Returns the authority in the part of a URI after the scheme and its colon.
fn authority(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("//")?;
    rest.split(['/', '?', '#']).next()
}

/// Returns whether the text is an `IPv6address` or an `IPvFuture`.
fn is_ip_literal(text: &str) -> bool {
    if let Some(future) = text.strip_prefix(['v', 'V']) {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:".contains(c);
        return future.split_once('.').is_some_and(|(version, address)| {
            let is_hex = version.bytes().all(|byte| byte.is_ascii_hexdigit());
            !version.is_empty() && is_hex && !address.is_empty() && address.chars().all(allowed)
        });
    }
    text.parse::<Ipv6Addr>().is_ok()
}

/// Returns the normalized spelling, which all syntactically equivalent URIs share (RFC 3986,
/// section 6.2.2): scheme and host in lower case, unreserved characters not percent-encoded, and
/// others percent-encoded with digits in upper case.
pub fn normalize(uri: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Cow::Borrowed(uri);
    };
    let host = authority(rest).map(|authority| {
        let start = scheme.len() + 3 + authority.rfind('@').map_or(0, |at| at + 1);
        start..scheme.len() + 3 + authority.len()
    });
    let mut out = String::with_capacity(uri.len());
    let mut at = 0;
    while let Some(c) = uri.get(at..).and_then(|rest| rest.chars().next()) {
        let is_host = host.as_ref().is_some_and(|host| host.contains(&at));
        let ignores_case = at < scheme.len() || is_host;
        let normalize_case = |c: char| {
            if ignores_case {
                c.to_ascii_lowercase()
            } else {
                c
            }
        };
        let decoded = (c == '%').then(|| {
            uri.get(at + 1..at + 3)
                .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        });
        match decoded.flatten() {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(normalize_case(char::from(byte)));
                at += 3;
            }
            Some(byte) => {
                let _ = write!(out, "%{byte:02X}");
                at += 3;
            }
            None => {
                out.push(normalize_case(c));
                at += c.len_utf8();
            }
        }
    }
    if out == uri {
        Cow::Borrowed(uri)
    } else {
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_that_no_client_parses_are_refused() {
        for uri in [
            "http://example.com",
            "http://u:p@h:80/a?b#c",
            "https://[::1]:8080/",
            "notes:",
            "urn:a:b",
            "file:///a",
            "x://",
            "http://h:/",
            "http://[v1.a:b]/",
            "x:a//b:99999",
            "notes://A b",
            "ui://chart/a:b",
        ] {
            assert_eq!(check_authority(uri), Ok(()), "{uri}");
        }
        let invalid_uris = [
            "http://[::1/",
            "http://",
            "http:a",
            "HTTPS:///x",
            "http://h:99999/",
            "http://h:65536",
            "x://h:a/",
            "http://[1.2]/",
            "http://[::1]8/",
            "http://a[b]/",
            "x://:80",
            "http://[v.a]/",
            "http://?q",
            "http://u@/",
            "http://h:-1/",
        ];
        let messages: Vec<String> = invalid_uris
            .iter()
            .map(|uri| format!("{uri} {}", check_authority(uri).unwrap_err()))
            .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }

    #[test]
    fn equivalent_uris_have_one_normalized_spelling() {
        let cases = [
            (
                "HTTP://User@EXAMPLE.com:80/A%7eb%2fC?Q=%41",
                "http://User@example.com:80/A~b%2FC?Q=A",
            ),
            ("Notes:A/B", "notes:A/B"),
            ("x://H%41/%C3%bc", "x://ha/%C3%BC"),
            ("x:%zz%", "x:%zz%"),
            ("no colon", "no colon"),
            ("x:ü%", "x:ü%"),
        ];
        for (uri, expected) in cases {
            assert_eq!(normalize(uri), expected);
            assert_eq!(normalize(expected), expected, "twice");
        }
    }
}
