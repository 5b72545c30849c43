//! Where a plugin comes from.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use toolbay_model::Digest;
use url::Url;

use crate::oci_reference::OciReference;
use crate::package_name::PackageName;
use crate::url_check::check_url;

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
    /// An artifact in an OCI registry.
    Oci(OciReference),
    /// A package, in the registry that the user has configured for it.
    Package(PackageName),
}

impl PluginReference {
    /// Returns the digest that the reference states.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File(_) | Self::Package(_) => None,
            Self::Url { digest, .. } => *digest,
            Self::Oci(reference) => reference.digest(),
        }
    }

    /// Returns the reference as text, with its digest. [`PluginReference::from_str`] reads it.
    pub fn to_pinned_text(&self) -> String {
        match self {
            Self::Url {
                url,
                digest: Some(digest),
            } => format!("{url}#{DIGEST_PREFIX}{digest}"),
            other => other.to_string(),
        }
    }

    /// Returns whether `resolved` is this reference with a digest. If this reference states a
    /// digest, it is the same one.
    pub fn is_resolved_by(&self, resolved: &Self) -> bool {
        let has_same_digest = self
            .digest()
            .is_none_or(|digest| Some(digest) == resolved.digest());
        let has_same_name = match (self, resolved) {
            (Self::Url { url, .. }, Self::Url { url: other, .. }) => url == other,
            (Self::Oci(reference), Self::Oci(other)) => {
                reference.origin() == other.origin()
                    && reference.repository() == other.repository()
                    && reference.tag() == other.tag()
            }
            (Self::Package(package), Self::Oci(other)) => {
                let path = format!("{}/{}", package.namespace(), package.name());
                let before = other.repository().strip_suffix(&path);
                before.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('/'))
                    && other.tag() == Some(&package.version().to_string())
            }
            _ => false,
        };
        has_same_name && has_same_digest
    }
}

impl FromStr for PluginReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if OciReference::has_scheme(text) {
            return Ok(Self::Oci(text.parse()?));
        }
        if PackageName::looks_like(text) {
            return Ok(Self::Package(text.parse()?));
        }
        if !text.contains("://") {
            return Ok(Self::File(PathBuf::from(text)));
        }
        let mut url = Url::parse(text).map_err(|why| format!("{text:?} is not a URL: {why}"))?;
        check_url(&url)?;
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
            Self::Oci(reference) => reference.fmt(f),
            Self::Package(package) => package.fmt(f),
        }
    }
}

fn parse_fragment(fragment: &str) -> Result<Digest, String> {
    let wrong =
        || format!("#{fragment} is not a digest; write #{DIGEST_PREFIX} and 64 hexadecimal digits");
    fragment
        .strip_prefix(DIGEST_PREFIX)
        .and_then(Digest::from_hex)
        .ok_or_else(wrong)
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
