//! URLs that a server may fetch from.

use std::net::IpAddr;

use url::{Host, Url};

/// Checks that a URL can be used: the first one, or the target of a redirect.
///
/// # Errors
///
/// Returns the mistake, with the URL.
pub fn check_url(url: &Url) -> Result<(), String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "the URL of {} must not contain a user or a password",
            url.host_str().unwrap_or_default()
        ));
    }
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err(format!(
            "{url} is not a URL with https (http only to a loopback address)"
        )),
    }
}
