//! Splits an authority, `host[:port]`, before its parts are parsed.

use crate::host::{AUTHORITY, NormalizedHost};
use crate::malformed::AuthorityError;

/// The host and the port of an authority, as they are written. A port without digits (`host:`) is `Some("")`.
///
/// Rules and requests are split here, so that they never disagree about where a host ends.
pub(crate) fn split(text: &str) -> Result<(&str, Option<&str>), AuthorityError> {
    if text.len() > AUTHORITY {
        return Err(AuthorityError::Length);
    }
    // What ends an authority comes first: of `allowed.com\@evil.com`, one parser would take the first host and another
    // the second.
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '\\' | '?' | '#')) {
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
    if host.trim_start_matches('[').trim_end_matches(']').contains(['[', ']']) {
        return Err(AuthorityError::Bracket);
    }
    if port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(AuthorityError::Port);
    }
    Ok((host, port))
}

/// The host and the port of a request. As in the URL standard, leading zeros of a port mean nothing, and `host:` has
/// the default port, `None`.
pub(crate) fn parse(text: &str) -> Result<(NormalizedHost, Option<u16>), AuthorityError> {
    let (host, port) = split(text)?;
    let port = port.filter(|port| !port.is_empty()).map(number).transpose()?;
    Ok((NormalizedHost::parse(host)?, port))
}

/// A port in digits: 1 to 65535.
pub(crate) fn number(digits: &str) -> Result<u16, AuthorityError> {
    match digits.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(AuthorityError::Port),
    }
}
