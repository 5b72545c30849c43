//! References to artifacts in OCI registries.

use std::fmt;
use std::str::FromStr;

use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use url::Url;

use crate::url_check::check_url;

/// Scheme of a reference to a registry that is reached over https.
const SCHEME: &str = "oci://";

/// Scheme of a reference to a registry that is reached over http, on a loopback address.
const PLAIN_SCHEME: &str = "oci+http://";

/// The tag of a reference that has neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// Maximum length of a registry and a repository together, in bytes, as in the distribution
/// specification.
const MAX_NAME_BYTES: usize = 255;

/// Maximum length of a tag, in bytes, as in the distribution specification.
const MAX_TAG_BYTES: usize = 128;

/// Maximum length of a reference in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// A reference to an artifact in an OCI registry: `oci://host[:port]/repository[:tag][@sha256:…]`.
/// It has a tag, a digest or both: with both, the digest decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference {
    /// The address of the registry, `https://host[:port]/`.
    origin: Url,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl OciReference {
    /// Returns whether a text has the scheme of such a reference.
    pub fn has_scheme(text: &str) -> bool {
        text.starts_with(SCHEME) || text.starts_with(PLAIN_SCHEME)
    }

    /// Returns the address of the registry: `https`, or `http` with a loopback address. Its path is
    /// `/`.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// Returns the registry as `host` or `host:port`.
    pub fn registry(&self) -> String {
        let host = self.origin.host_str().unwrap_or_default();
        match self.origin.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Returns the repository, such as `acme/weather`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the last part of the repository, such as `weather`.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest of the manifest.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the reference with this tag and without a digest.
    ///
    /// # Errors
    ///
    /// The text is not a tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, String> {
        check_tag(tag)?;
        Ok(Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        })
    }

    /// Returns the reference with this digest.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            ..self.clone()
        }
    }
}

impl FromStr for OciReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "{:?} is not a reference such as oci://registry.example.com/acme/weather:1.2.0: {why}",
                clean_line(text, MAX_SHOWN_BYTES)
            )
        };
        let (scheme, rest) = if let Some(rest) = text.strip_prefix(SCHEME) {
            ("https", rest)
        } else if let Some(rest) = text.strip_prefix(PLAIN_SCHEME) {
            ("http", rest)
        } else {
            return Err(wrong("it must begin with oci://"));
        };
        let (name, digest) = match rest.split_once('@') {
            Some((name, digest)) => (name, Some(parse_digest(digest).map_err(|why| wrong(&why))?)),
            None => (rest, None),
        };
        let (registry, path) = name
            .split_once('/')
            .ok_or_else(|| wrong("it has no repository"))?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if name.len() > MAX_NAME_BYTES + 1 + MAX_TAG_BYTES
            || registry.len() + repository.len() > MAX_NAME_BYTES
        {
            return Err(wrong("it is too long"));
        }
        let origin = parse_registry(scheme, registry).map_err(|why| wrong(&why))?;
        if !repository.split('/').all(is_repository_part) {
            return Err(wrong(
                "a repository has parts of a-z 0-9 . _ - with / between them",
            ));
        }
        if let Some(tag) = tag {
            check_tag(tag).map_err(|why| wrong(&why))?;
        }
        let tag = tag.or(digest.is_none().then_some(DEFAULT_TAG));
        Ok(Self {
            origin,
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.origin.scheme() {
            "http" => PLAIN_SCHEME,
            _ => SCHEME,
        };
        write!(f, "{scheme}{}/{}", self.registry(), self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{}{digest}", Digest::PREFIX)?;
        }
        Ok(())
    }
}

/// Parses `sha256:` and 64 hexadecimal digits.
///
/// # Errors
///
/// The text is something else; other algorithms are not supported.
pub fn parse_digest(text: &str) -> Result<Digest, String> {
    Digest::from_prefixed_hex(text).ok_or_else(|| {
        format!(
            "{:?} is not a digest; write {} and 64 hexadecimal digits",
            clean_line(text, MAX_SHOWN_BYTES),
            Digest::PREFIX
        )
    })
}

fn parse_registry(scheme: &str, registry: &str) -> Result<Url, String> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if registry.is_empty() || !registry.chars().all(is_known) {
        return Err("the registry must be a host, or a host and a port".to_owned());
    }
    let url = Url::parse(&format!("{scheme}://{registry}/")).map_err(|why| why.to_string())?;
    check_url(&url).map_err(|_| {
        "oci+http:// is for registries with a loopback address; use oci://".to_owned()
    })?;
    Ok(url)
}

/// Returns whether a text is a part of the name of a repository, as in the distribution
/// specification: lower-case letters and digits, with separators between them.
fn is_repository_part(part: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    if !bytes.first().is_some_and(is_letter) || !bytes.last().is_some_and(is_letter) {
        return false;
    }
    part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .all(|separator| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

fn check_tag(tag: &str) -> Result<(), String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let begins_well = tag.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    if begins_well && tag.len() <= MAX_TAG_BYTES && tag.bytes().all(is_known) {
        return Ok(());
    }
    Err(format!(
        "{:?} is not a tag: at most {MAX_TAG_BYTES} of A-Z a-z 0-9 _ . -",
        clean_line(tag, MAX_SHOWN_BYTES)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_parsed_and_shown_the_same() {
        let digest = "ab".repeat(32);
        for text in [
            "oci://registry.example.com/acme/weather:1.2.0".to_owned(),
            "oci://registry.example.com:5000/a/b/c-d__e.f:v1".to_owned(),
            format!("oci://registry.example.com/weather@sha256:{digest}"),
            format!("oci://registry.example.com/weather:1@sha256:{digest}"),
            "oci+http://127.0.0.1:5000/weather:1".to_owned(),
            "oci+http://[::1]:5000/weather:1".to_owned(),
        ] {
            let reference: OciReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
        }
        let bare: OciReference = "oci://registry.example.com/acme/weather".parse().unwrap();
        assert_eq!(bare.tag(), Some("latest"));
        assert_eq!(
            (bare.name(), bare.repository()),
            ("weather", "acme/weather")
        );
        assert_eq!(bare.registry(), "registry.example.com");
    }

    #[test]
    fn other_texts_are_refused() {
        let long = "a".repeat(300);
        for text in [
            "oci://",
            "oci://registry.example.com",
            "oci://registry.example.com/",
            "oci:///weather",
            "oci://user@registry.example.com/weather",
            "oci://user:secret@registry.example.com/weather",
            "oci://registry.example.com/Weather",
            "oci://registry.example.com/a//b",
            "oci://registry.example.com/../b",
            "oci://registry.example.com/a/../../v2/b",
            "oci://registry.example.com/a?b=c",
            "oci://registry.example.com/a#b",
            "oci://registry.example.com/a:",
            "oci://registry.example.com/a:.1",
            "oci://registry.example.com/a:1/2",
            "oci://registry.example.com/a:1:2",
            "oci://registry.example.com/a@sha256:ab",
            "oci://registry.example.com/a@md5:ab",
            "oci://registry example.com/a",
            "oci+http://registry.example.com/a",
            "oci+http://10.0.0.1/a",
            &format!("oci://registry.example.com/{long}"),
        ] {
            assert!(text.parse::<OciReference>().is_err(), "{text}");
        }
    }
}
