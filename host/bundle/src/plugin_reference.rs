//! Where a plugin comes from.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use toolbay_model::Digest;
use url::{Host, Url};

/// The beginning of a URL's fragment that has the digest.
const DIGEST_PREFIX: &str = "sha256=";

/// Where a plugin comes from. More kinds can follow, so others match with a fallback.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginReference {
    /// A file of this machine.
    File(PathBuf),
    /// A URL with `https`, or with `http` and a loopback address.
    Url {
        /// The URL, without its fragment.
        url: Url,
        /// The digest that the file must have.
        digest: Option<Digest>,
    },
}

impl PluginReference {
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
}

impl FromStr for PluginReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self::File(PathBuf::from(text)));
        }
        let mut url = Url::parse(text).map_err(|why| format!("{text:?} is not a URL: {why}"))?;
        Self::check_url(&url)?;
        let digest = url.fragment().map(parse_fragment).transpose()?;
        url.set_fragment(None);
        Ok(Self::Url { url, digest })
    }
}

impl fmt::Display for PluginReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url { url, .. } => url.fmt(f),
        }
    }
}

fn parse_fragment(fragment: &str) -> Result<Digest, String> {
    let wrong =
        || format!("#{fragment} is not a digest; write #{DIGEST_PREFIX} and 64 hexadecimal digits");
    let digits = fragment.strip_prefix(DIGEST_PREFIX).ok_or_else(wrong)?;
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * index..2 * index + 2).ok_or_else(wrong)?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(Digest::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_urls_are_distinguished() {
        let digest = "ab".repeat(32);
        assert_eq!(
            "a.bay".parse(),
            Ok(PluginReference::File(PathBuf::from("a.bay")))
        );
        assert_eq!(
            format!("https://example.com/a.bay#sha256={digest}").parse(),
            Ok(PluginReference::Url {
                url: Url::parse("https://example.com/a.bay").unwrap(),
                digest: Some(Digest::new([0xab; 32])),
            })
        );
        for url in [
            "http://127.0.0.1:8080/a.bay",
            "http://[::1]/a.bay",
            "http://localhost/a",
        ] {
            assert!(url.parse::<PluginReference>().is_ok(), "{url}");
        }
    }

    #[test]
    fn unsafe_urls_and_wrong_digests_are_refused() {
        for url in [
            "http://example.com/a.bay",
            "http://127.0.0.1.example.com/a.bay",
            "http://localhost.example.com/a",
            "http://10.0.0.1/a.bay",
            "ftp://example.com/a.bay",
            "file:///etc/passwd",
            "https://user:secret@example.com/a.bay",
            "https://",
            "https://example.com/a#sha256=ab",
            "https://example.com/a#md5=ab",
            "https://example.com/a#",
        ] {
            assert!(url.parse::<PluginReference>().is_err(), "{url}");
        }
        let signs = format!("https://example.com/a#sha256={}", "+a".repeat(32));
        assert!(signs.parse::<PluginReference>().is_err());
    }
}
