//! Networks that only a host that a person named can be in.

use toolbay_policy::AddressRange;
use url::{Host, Url};

/// Networks that a person can name in a reference, but to which no answer of a server leads.
const PRIVATE_NETWORKS: [&str; 7] = [
    "127.0.0.0/8",
    "::1",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
];

/// Returns the networks that a person can name in a reference, in addition to the public ones. No
/// redirect leads there, so that a registry cannot read services behind this machine.
pub fn private_networks() -> Vec<AddressRange> {
    PRIVATE_NETWORKS
        .iter()
        .filter_map(|text| AddressRange::parse(text).ok())
        .collect()
}

/// Returns whether a URL can be in a private network, because a person named its host, or the domain
/// directly above it. A registry in a company and its login or storage often share that domain.
pub(crate) fn is_named(url: &Url, named: &Url) -> bool {
    let (Some(host), Some(known)) = (url.host(), named.host()) else {
        return false;
    };
    if host == known {
        return true;
    }
    let (Host::Domain(host), Host::Domain(known)) = (host, known) else {
        return false;
    };
    // A domain of one part, such as `com`, does not say who runs it.
    let parent = known.split_once('.').map(|(_, parent)| parent);
    parent.is_some_and(|parent| {
        parent.contains('.')
            && host
                .strip_suffix(parent)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_with_the_domain_above_it() {
        assert_eq!(private_networks().len(), PRIVATE_NETWORKS.len());
        let is_named = |one: &str, other: &str| {
            let url = |host: &str| Url::parse(&format!("https://{host}/")).unwrap();
            is_named(&url(one), &url(other))
        };
        for (host, named) in [
            ("registry.corp.example", "registry.corp.example"),
            ("registry.corp.example:8443", "registry.corp.example"),
            ("login.corp.example", "registry.corp.example"),
            ("corp.example", "registry.corp.example"),
            ("10.0.0.1:5000", "10.0.0.1"),
        ] {
            assert!(is_named(host, named), "{host} {named}");
        }
        for (host, named) in [
            ("127.0.0.1", "registry.corp.example"),
            ("evilcorp.example", "registry.corp.example"),
            ("a.example", "b.example"),
            ("registry.corp.example", "example"),
            ("10.0.0.2", "10.0.0.1"),
            ("169.254.169.254", "registry.corp.example"),
        ] {
            assert!(!is_named(host, named), "{host} {named}");
        }
    }
}
