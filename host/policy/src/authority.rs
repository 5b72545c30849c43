//! Splitting and parsing of authorities, `host[:port]`.

use crate::authority_error::AuthorityError;
use crate::host::{MAX_AUTHORITY_BYTES, NormalizedHost};

/// Splits an authority into the host and the port as they are written. A port without digits
/// (`host:`) is `Some("")`.
///
/// Both rules and requests use this function, so they always agree on the end of the host.
pub(crate) fn split_host_port(text: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    if text.len() > MAX_AUTHORITY_BYTES {
        return Err(AuthorityError::Length);
    }
    // Delimiters are checked first: in `allowed.com\@evil.com`, one parser would find the first
    // host and another parser the second.
    if text.contains(|c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '/' | '\\' | '?' | '#')
    }) {
        return Err(AuthorityError::Character);
    }
    if text.contains('%') {
        return Err(AuthorityError::Percent);
    }
    if text.contains('@') {
        return Err(AuthorityError::Userinfo);
    }
    let (host, port) = if text.starts_with('[') {
        let end = text.find(']').ok_or(AuthorityError::Bracket)?;
        let (host, rest) = text.split_at(end + 1);
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err(AuthorityError::Bracket),
        }
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(AuthorityError::Empty);
    }
    if host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .contains(['[', ']'])
    {
        return Err(AuthorityError::Bracket);
    }
    if port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(AuthorityError::Port);
    }
    Ok((host, port))
}

/// Parses the host and the port of a request. As in the URL standard, leading zeros of a port have
/// no meaning, and `host:` has the default port, `None`.
pub(crate) fn parse_host_port(text: &str) -> Result<(NormalizedHost, Option<u16>), AuthorityError> {
    let (host, port) = split_host_port(text)?;
    let port = port
        .filter(|port| !port.is_empty())
        .map(parse_port)
        .transpose()?;
    Ok((NormalizedHost::parse(host)?, port))
}

/// Parses a decimal port: 1 to 65535.
pub(crate) fn parse_port(digits: &str) -> Result<u16, AuthorityError> {
    match digits.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(AuthorityError::Port),
    }
}
