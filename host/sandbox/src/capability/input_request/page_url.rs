//! Checks of the URLs to which questions send the user.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;
use toolbay_model::text::clean_line;
use url::{Host, Url};

/// Maximum size of a quotation in a message about a URL, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Checks that the page uses TLS or is on the client's machine. The host that a browser finds in
/// the URL must be the host that a person reads. URLs that browsers and people can read differently
/// are rejected.
pub(super) fn check_url(params: &Value) -> Result<(), String> {
    if !params.get("message").is_some_and(Value::is_string) {
        return Err("`message` must state the purpose of the page".to_owned());
    }
    let text = params
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let quoted = || clean_line(text, MAX_QUOTED_BYTES);
    // Browsers remove tabs and line ends from a URL, and read a backslash as a slash.
    if let Some(c) = text
        .chars()
        .find(|c| c.is_whitespace() || c.is_control() || *c == '\\')
    {
        return Err(format!(
            "`url` must not contain {c:?}; write it in percent-encoding, not as in {:?}",
            quoted()
        ));
    }
    let url = Url::parse(text)
        .map_err(|error| format!("`url` is not a URL ({error}): {:?}", quoted()))?;
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address == Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == Ipv6Addr::LOCALHOST,
        None => false,
    };
    if !(url.scheme() == "https" || (url.scheme() == "http" && is_loopback)) {
        let rule =
            "`url` must begin with https://, or with http://localhost or a loopback address, not";
        return Err(format!("{rule} {:?}", quoted()));
    }
    // Browsers also find a host in `https:a.example` and `https:///a.example`.
    let authority = text
        .split_once("://")
        .map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let authority = authority.filter(|authority| !authority.is_empty());
    let Some(authority) = authority else {
        return Err(format!(
            "`url` must name a host after `{}://`, not {:?}",
            url.scheme(),
            quoted()
        ));
    };
    // This includes an empty user: the text before the `@` looks like the host.
    if authority.contains('@') {
        return Err(format!(
            "`url` must not have user information (the part before `@`), as in {:?}",
            quoted()
        ));
    }
    if authority.contains('%') {
        return Err(format!(
            "`url` must not have percent-encoding in its host, as in {:?}",
            quoted()
        ));
    }
    Ok(())
}
