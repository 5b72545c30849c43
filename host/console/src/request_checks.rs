//! Request checks against cross-site request forgery.
//!
//! Browsers send the session cookie with every request to this host, regardless of the port,
//! including requests from pages of other servers on the same machine. A request that changes state
//! must therefore have the console's own origin and the CSRF token of a form.

use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName};

/// The browser's statement about the relation between the requesting site and the console.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns whether a read request may use a session: it was not sent by a page of another origin.
pub(crate) fn may_read(headers: &HeaderMap) -> bool {
    let has_own_origin = headers
        .get_all(ORIGIN)
        .iter()
        .all(|_| is_own_origin(headers));
    has_own_origin
        && headers
            .get_all(SEC_FETCH_SITE)
            .iter()
            .all(|site| site == "same-origin" || site == "none")
}

/// Returns whether a request that changes state was sent by a page of the console.
pub(crate) fn may_change(headers: &HeaderMap) -> bool {
    // Every browser sends the origin of a form.
    is_own_origin(headers)
        && headers
            .get_all(SEC_FETCH_SITE)
            .iter()
            .all(|site| site == "same-origin")
}

/// Returns whether the console is reached over TLS, according to the origin of its page.
pub(crate) fn is_secure(headers: &HeaderMap) -> bool {
    headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Returns whether the request has exactly one origin, which matches the requested host.
fn is_own_origin(headers: &HeaderMap) -> bool {
    let single_value = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?;
        let second = values.next();
        value.to_str().ok().filter(|_| second.is_none())
    };
    let (Some(origin), Some(host)) = (single_value(ORIGIN), single_value(HOST)) else {
        return false;
    };
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| !authority.is_empty() && authority.eq_ignore_ascii_case(host))
}

/// Returns the value of the cookie with this name; `None` if it does not exist or is ambiguous.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookie_headers = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut values = cookie_headers
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter(|(cookie_name, _)| *cookie_name == name)
        .map(|(_, value)| value);
    let value = values.next()?;
    let second = values.next();
    second.is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        headers
    }

    #[test]
    fn only_pages_of_the_console_can_change_state() {
        let host = ("host", "127.0.0.1:8931");
        let own_origin = ("origin", "http://127.0.0.1:8931");
        for good in [
            vec![host, own_origin],
            vec![host, own_origin, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(
                may_change(&headers(&good)) && may_read(&headers(&good)),
                "{good:?}"
            );
        }
        for bad in [
            vec![host],
            vec![own_origin],
            vec![host, ("origin", "null")],
            vec![host, ("origin", "http://")],
            vec![host, ("origin", "http://127.0.0.1:9999")],
            vec![host, ("origin", "http://127.0.0.1")],
            vec![host, ("origin", "ftp://127.0.0.1:8931")],
            vec![host, ("origin", "127.0.0.1:8931")],
            vec![host, own_origin, own_origin],
            vec![host, own_origin, ("sec-fetch-site", "same-site")],
            vec![host, own_origin, ("sec-fetch-site", "cross-site")],
            vec![host, own_origin, ("sec-fetch-site", "none")],
            vec![host, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(!may_change(&headers(&bad)), "{bad:?}");
        }
    }

    #[test]
    fn pages_of_other_origins_cannot_read() {
        let host = ("host", "localhost:8931");
        for good in [
            vec![host],
            vec![host, ("sec-fetch-site", "none")],
            vec![host, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(may_read(&headers(&good)), "{good:?}");
        }
        for bad in [
            vec![host, ("sec-fetch-site", "same-site")],
            vec![host, ("sec-fetch-site", "cross-site")],
            vec![host, ("origin", "http://localhost:1")],
            vec![host, ("origin", "null")],
        ] {
            assert!(!may_read(&headers(&bad)), "{bad:?}");
        }
    }

    #[test]
    fn cookie_must_be_unique() {
        let find_cookie = |all: &[(&str, &str)]| cookie(&headers(all), "a").map(str::to_owned);
        assert_eq!(find_cookie(&[("cookie", "b=2; a=1")]).as_deref(), Some("1"));
        assert_eq!(
            find_cookie(&[("cookie", "b=2"), ("cookie", "a=x=y")]).as_deref(),
            Some("x=y")
        );
        assert_eq!(find_cookie(&[("cookie", "a=1; a=2")]), None);
        assert_eq!(find_cookie(&[("cookie", "a=1"), ("cookie", "a=1")]), None);
        assert_eq!(find_cookie(&[("cookie", "aa=1; a")]), None);
    }
}
