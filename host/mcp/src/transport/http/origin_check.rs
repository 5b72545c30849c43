//! Checks `Host` and `Origin` of every request, to prevent DNS rebinding and cross-site requests
//! from a browser.

use std::collections::HashSet;
use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};

use super::address::ListenAddress;

/// The name of the local machine.
const LOCALHOST: &str = "localhost";

/// The accepted values of `Host` and `Origin`.
#[derive(Debug)]
pub(super) struct OriginGuard {
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// If set, pages of this machine are accepted. This is the case if only this machine can reach
    /// the address.
    local_origins: bool,
}

impl OriginGuard {
    /// Creates a guard with these values of `Host` and `Origin`, for a listener at `address`.
    pub(super) fn new(hosts: &[String], origins: &[String], address: &ListenAddress) -> Self {
        let mut hosts: HashSet<String> =
            hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        // Clients of a Unix socket use the name of the local machine.
        if let ListenAddress::Internet(address) = address
            && !address.ip().is_unspecified()
        {
            hosts.insert(host_text(address.ip()));
        }
        let origins = origins
            .iter()
            .map(|origin| origin.to_ascii_lowercase())
            .collect();
        Self {
            hosts,
            origins,
            local_origins: address.is_local(),
        }
    }

    /// Checks the target and the headers of a request.
    ///
    /// # Errors
    ///
    /// The status and text of the response, and the reason without any text of the client. A
    /// request without exactly one `Host` is malformed (RFC 9112, 3.2). For other requests, the
    /// text states what is not allowed and how to allow it.
    pub(super) fn check(
        &self,
        target: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), (StatusCode, String, &'static str)> {
        let forbidden =
            |why: String, reason: &'static str| Err((StatusCode::FORBIDDEN, why, reason));
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next();
        let second = hosts.next();
        let Some(host) = host
            .filter(|_| second.is_none())
            .and_then(|host| host.to_str().ok())
        else {
            let why = "exactly one Host header is required";
            return Err((StatusCode::BAD_REQUEST, why.to_owned(), why));
        };
        if !self.is_allowed_host(host) {
            let why = format!(
                "the Host {host:?} is not allowed; to allow it, add it to http.allowed_hosts"
            );
            return forbidden(why, "a Host that is not allowed");
        }
        // A host in the target takes precedence over `Host` (RFC 9112, 3.2.2).
        if let Some(host) = target
            .authority()
            .map(Authority::as_str)
            .filter(|host| !self.is_allowed_host(host))
        {
            let why = format!(
                "the host {host:?} of the target is not allowed; to allow it, add it to http.allowed_hosts"
            );
            return forbidden(why, "a target that is not allowed");
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !self.is_allowed_origin(origin) {
                let why = format!(
                    "the Origin {origin:?} is not allowed; to allow it, add it to http.allowed_origins"
                );
                return forbidden(why, "an Origin that is not allowed");
            }
        }
        Ok(())
    }

    /// Returns whether `text` is an accepted host. The port is ignored, because a proxy may use
    /// another one.
    fn is_allowed_host(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        host_name(&text).is_some_and(|name| is_local_host(name) || self.hosts.contains(name))
            || self.hosts.contains(&text)
    }

    /// Returns whether `text` is an accepted origin.
    pub(super) fn is_allowed_origin(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        if self.origins.contains(&text) {
            return true;
        }
        let Some((scheme, authority)) = text.split_once("://") else {
            return false;
        };
        self.local_origins
            && matches!(scheme, "http" | "https")
            && host_name(authority).is_some_and(is_local_host)
    }
}

/// Returns the host of an authority, without its port; `None` if the authority is invalid or has a
/// user.
fn host_name(authority: &str) -> Option<&str> {
    let uri = authority
        .parse::<Uri>()
        .ok()
        .filter(|_| !authority.contains('@'))?;
    let (host, port) = authority.split_at_checked(uri.host()?.len())?;
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(digits)).then_some(host)
}

fn is_local_host(name: &str) -> bool {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name == LOCALHOST
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn host_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: &[&str], origins: &[&str], address: &str) -> OriginGuard {
        let [hosts, origins] = [hosts, origins].map(|names| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        });
        OriginGuard::new(&hosts, &origins, &address.parse().unwrap())
    }

    #[test]
    fn loopback_names_and_configured_hosts_are_accepted() {
        let local = guard(&[], &[], "127.0.0.1:8931");
        for host in [
            "localhost",
            "localhost:1",
            "LOCALHOST:8931",
            "127.0.0.1:8931",
            "127.0.0.2",
            "[::1]:8931",
            "[::1]",
        ] {
            assert!(local.is_allowed_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8931",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "x@localhost",
            "localhost@evil.example",
            "localhost:x",
            "[::1",
            "192.168.0.1",
            "0.0.0.0",
            "local host",
            "/",
        ] {
            assert!(!local.is_allowed_host(host), "{host}");
        }
        let open = guard(&["Tools.Example.com", "a.example:444"], &[], "0.0.0.0:80");
        for host in [
            "tools.example.com",
            "tools.example.com:8080",
            "a.example:444",
            "localhost",
        ] {
            assert!(open.is_allowed_host(host), "{host}");
        }
        for host in ["0.0.0.0", "a.example", "a.example:443"] {
            assert!(!open.is_allowed_host(host), "{host}");
        }
        assert!(guard(&[], &[], "192.168.0.7:80").is_allowed_host("192.168.0.7:80"));
        let socket = guard(&["tools.example.com"], &[], "unix:/run/mcp.sock");
        for host in [
            "localhost",
            "localhost:80",
            "127.0.0.1",
            "tools.example.com",
        ] {
            assert!(socket.is_allowed_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "unix",
            "/run/mcp.sock",
            "mcp.sock",
            "0.0.0.0",
            "192.168.0.1",
        ] {
            assert!(!socket.is_allowed_host(host), "{host}");
        }
    }

    #[test]
    fn a_target_with_a_host_is_checked_like_the_header() {
        let guard = guard(&["tools.example.com"], &[], "127.0.0.1:8931");
        let check = |target: &str, host: &str| {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            guard.check(&target.parse().unwrap(), &headers)
        };
        for target in [
            "/mcp",
            "http://localhost/mcp",
            "http://tools.example.com:80/mcp",
            "http://127.0.0.1:8931/mcp",
        ] {
            check(target, "localhost").unwrap();
            check(target, "evil.example").unwrap_err();
        }
        for target in [
            "http://evil.example/mcp",
            "http://localhost@evil.example/mcp",
            "http://x@localhost/mcp",
        ] {
            assert!(
                check(target, "localhost").unwrap_err().1.contains("target"),
                "{target}"
            );
        }
    }

    #[test]
    fn local_pages_and_configured_origins_are_accepted() {
        let local = guard(&[], &["https://app.example"], "127.0.0.1:8931");
        for origin in [
            "http://localhost:6274",
            "http://127.0.0.1",
            "https://[::1]:1",
            "https://app.example",
        ] {
            assert!(local.is_allowed_origin(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "http://evil.example",
            "https://app.example:444",
            "http://app.example",
            "file://localhost",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "localhost",
        ] {
            assert!(!local.is_allowed_origin(origin), "{origin}");
        }
        // "Local" means something else to a client than to a server on another machine.
        assert!(!guard(&[], &[], "0.0.0.0:80").is_allowed_origin("http://localhost"));
        let socket = guard(&[], &[], "unix:/run/mcp.sock");
        assert!(
            socket.is_allowed_origin("http://localhost:9000")
                && !socket.is_allowed_origin("http://evil.example")
        );
    }
}
