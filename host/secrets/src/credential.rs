//! Secrets that the host adds to a plugin's requests. The guest never receives them.

use std::fmt;

use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolbay_model::CallerIdentity;
use toolbay_policy::{OriginPattern, UrlOrigin};
use zeroize::Zeroizing;

use crate::value::SecretValue;
use crate::withheld_credential::WithheldCredential;

/// Characters that are not encoded in a query parameter (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Maximum length of a URL, in bytes: the limit of HTTP libraries.
const MAX_URL_BYTES: usize = (u16::MAX - 1) as usize;

/// Headers that concern one connection or frame the message. The host sets or removes them.
const RESERVED_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Rule that states which requests carry a secret, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRule {
    origins: Vec<OriginPattern>,
    place: CredentialPlace,
}

/// Place of a secret in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CredentialPlace {
    /// Header, with the text before and after the secret.
    Header(HeaderName, String, String),
    /// Percent-encoded name of a query parameter.
    Query(String),
}

impl CredentialRule {
    /// Creates a rule by which requests to `origins` carry the secret in this header. `format` is
    /// the header's value, with `{}` in place of the secret.
    ///
    /// # Errors
    ///
    /// Returns an error if the name or value of the header is invalid.
    pub fn in_header(
        origins: Vec<OriginPattern>,
        header: &str,
        format: &str,
    ) -> Result<Self, String> {
        let name: HeaderName = header
            .parse()
            .map_err(|_| format!("{header:?} is not the name of a header"))?;
        if RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(format!(
                "the header {header:?} is about the connection; a secret cannot be in it"
            ));
        }
        let (before, after) = format.split_once("{}").unwrap_or((format, ""));
        if HeaderValue::from_str(before)
            .and(HeaderValue::from_str(after))
            .is_err()
        {
            return Err(
                "format has line ends or control characters, which no header can have".to_owned(),
            );
        }
        Ok(Self {
            origins,
            place: CredentialPlace::Header(name, before.to_owned(), after.to_owned()),
        })
    }

    /// Creates a rule by which requests to `origins` carry the secret in this query parameter.
    pub fn in_query(origins: Vec<OriginPattern>, parameter: &str) -> Self {
        Self {
            origins,
            place: CredentialPlace::Query(percent_encode(parameter).to_string()),
        }
    }

    /// Returns the origins.
    pub fn origins(&self) -> &[OriginPattern] {
        &self.origins
    }

    /// Checks whether requests can carry this value.
    pub(crate) fn check_value(&self, value: &SecretValue) -> Result<(), String> {
        match &self.place {
            CredentialPlace::Header(..) if HeaderValue::from_str(value.as_str()).is_err() => {
                Err("cannot be a header: it has line ends or control characters".to_owned())
            }
            CredentialPlace::Header(..) | CredentialPlace::Query(_) => Ok(()),
        }
    }
}

/// Writes the place and the origins, such as `the header authorization, at
/// https://api.example.com`.
impl fmt::Display for CredentialRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            CredentialPlace::Header(header, ..) => write!(f, "the header {header}, at ")?,
            CredentialPlace::Query(parameter) => write!(f, "the query parameter {parameter}, at ")?,
        }
        let origins: Vec<String> = self.origins.iter().map(ToString::to_string).collect();
        f.write_str(&origins.join(", "))
    }
}

/// Secret that the requests of one call carry to some origins.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestCredential {
    name: String,
    rule: CredentialRule,
    /// Caller that owns the secret; `None` if all callers share it.
    caller: Option<CallerIdentity>,
    value: SecretValue,
}

impl RequestCredential {
    pub(crate) fn new(
        name: &str,
        rule: CredentialRule,
        caller: Option<CallerIdentity>,
        value: SecretValue,
    ) -> Self {
        Self {
            name: name.to_owned(),
            rule,
            caller,
            value,
        }
    }

    /// Returns whether requests to this origin carry the secret.
    pub(crate) fn is_for(&self, origin: &UrlOrigin) -> bool {
        self.rule
            .origins
            .iter()
            .any(|pattern| pattern.covers(origin))
    }

    /// Adds the secret to a request, and replaces a value that the guest set.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot carry the secret. The request is then unchanged.
    pub(crate) fn add_to<B>(&self, request: &mut Request<B>) -> Result<(), WithheldCredential> {
        let text = self.value.as_str();
        match &self.rule.place {
            CredentialPlace::Header(name, before, after) => {
                let mut header_text = Zeroizing::new(String::with_capacity(
                    before.len() + text.len() + after.len(),
                ));
                for part in [before, text, after] {
                    header_text.push_str(part);
                }
                // The HTTP library owns the value that is sent, and does not overwrite it in
                // memory.
                let mut value = HeaderValue::from_str(&header_text)
                    .map_err(|_| WithheldCredential::Unusable(self.name.clone()))?;
                value.set_sensitive(true);
                request.headers_mut().insert(name, value);
            }
            CredentialPlace::Query(name) => {
                let mut value = Zeroizing::new(String::with_capacity(text.len() * 3));
                value.extend(percent_encode(text));
                *request.uri_mut() = with_query_parameter(request.uri(), name, &value)
                    .ok_or(WithheldCredential::TooLong(self.name.clone()))?;
            }
        }
        Ok(())
    }

    /// Appends the part of the connection pool's key that separates connections with this secret
    /// from all others. It is equal for equal values of the same caller in the same place.
    pub(crate) fn append_pool_key(&self, key: &mut Zeroizing<Vec<u8>>) {
        let caller = self.caller.as_ref().map_or("", CallerIdentity::as_str);
        let parts = [
            self.name.as_bytes(),
            caller.as_bytes(),
            self.value.as_str().as_bytes(),
        ];
        // Preallocate the space, because growing would leave a copy of the secret in memory.
        let space = parts
            .iter()
            .map(|part| part.len() + size_of::<usize>())
            .sum::<usize>();
        let mut extended = Zeroizing::new(Vec::with_capacity(key.len() + space));
        extended.extend_from_slice(key);
        for part in parts {
            // Include the lengths, so that different lists of parts never have the same key.
            extended.extend_from_slice(&part.len().to_le_bytes());
            extended.extend_from_slice(part);
        }
        *key = extended;
    }
}

fn percent_encode(text: &str) -> percent_encoding::PercentEncode<'_> {
    utf8_percent_encode(text, UNRESERVED)
}

/// Returns the URI with exactly one parameter of this name, at the end. `None` if it would be too
/// long.
fn with_query_parameter(uri: &Uri, name: &str, value: &str) -> Option<Uri> {
    let is_other = |pair: &&str| {
        let pair_name = pair.split('=').next().unwrap_or_default().replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&pair_name)
            .decode_utf8_lossy()
            .into_owned();
        !pair.is_empty() && percent_encode(&decoded).to_string() != name
    };
    let path = uri.path();
    let query = uri.query().unwrap_or_default();
    let origin_bytes = uri.scheme_str().map_or(0, str::len)
        + 3
        + uri.authority().map_or(0, |text| text.as_str().len());
    let path_and_query_bytes = path.len() + query.len() + name.len() + value.len() + 3;
    if origin_bytes + path_and_query_bytes > MAX_URL_BYTES {
        return None;
    }
    let mut path_and_query = Zeroizing::new(String::with_capacity(path_and_query_bytes));
    path_and_query.push_str(path);
    path_and_query.push('?');
    for pair in query.split('&').filter(is_other) {
        path_and_query.push_str(pair);
        path_and_query.push('&');
    }
    for part in [name, "=", value] {
        path_and_query.push_str(part);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query.as_str()).ok()?);
    Uri::from_parts(parts).ok()
}

/// Writes the purpose without the value: `github_token as the header authorization, at
/// https://api.github.com`.
impl fmt::Display for RequestCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.name, self.rule)
    }
}

impl fmt::Debug for RequestCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestCredential({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins() -> Vec<OriginPattern> {
        vec![OriginPattern::parse("https://api.example.com").unwrap()]
    }

    fn value(text: &str) -> SecretValue {
        SecretValue::parse(text.as_bytes()).unwrap()
    }

    fn header(format: &str, text: &str) -> RequestCredential {
        RequestCredential::new(
            "token",
            CredentialRule::in_header(origins(), "X-Key", format).unwrap(),
            None,
            value(text),
        )
    }

    fn request(uri: &str) -> Request<()> {
        Request::builder()
            .uri(uri)
            .header("x-key", "the guest's")
            .header("x-key", "twice")
            .body(())
            .unwrap()
    }

    #[test]
    fn header_replaces_the_value_of_the_guest() {
        let (credential, mut request) = (
            header("Bearer {}.", "s3cret-value"),
            request("https://api.example.com/"),
        );
        credential.add_to(&mut request).unwrap();
        let values: Vec<_> = request.headers().get_all("x-key").iter().collect();
        assert_eq!(values, ["Bearer s3cret-value."]);
        assert!(!format!("{request:?} {credential:?} {credential}").contains("s3cret"));
        assert_eq!(
            credential.to_string(),
            "token as the header x-key, at https://api.example.com"
        );
    }

    #[test]
    fn a_header_that_cannot_carry_a_secret_is_refused() {
        let refused = |header: &str, format: &str| {
            CredentialRule::in_header(origins(), header, format).unwrap_err()
        };
        assert_eq!(refused("a b", "{}"), "\"a b\" is not the name of a header");
        for name in [
            "Connection",
            "Host",
            "Proxy-Authorization",
            "TE",
            "Content-Length",
        ] {
            assert!(
                refused(name, "{}").ends_with("is about the connection; a secret cannot be in it"),
                "{name}"
            );
        }
        assert!(refused("a", "x\r\ny: {}").starts_with("format has line ends"));
        let lines = CredentialRule::in_header(origins(), "a", "{}")
            .unwrap()
            .check_value(&value("s3cret\r\nx: y-z"));
        assert_eq!(
            lines.unwrap_err(),
            "cannot be a header: it has line ends or control characters"
        );
        assert_eq!(
            CredentialRule::in_query(origins(), "a").check_value(&value("s3cret\r\nx: y-z")),
            Ok(())
        );
    }

    #[test]
    fn parameter_replaces_the_value_of_the_guest() {
        let credential = RequestCredential::new(
            "token",
            CredentialRule::in_query(origins(), "api key"),
            None,
            value("a&b=c d!"),
        );
        for (uri, expected) in [
            ("https://api.example.com", "/?api%20key=a%26b%3Dc%20d%21"),
            (
                "https://api.example.com/v1?",
                "/v1?api%20key=a%26b%3Dc%20d%21",
            ),
            (
                "https://api.example.com/v1?q=1&api+key=x&%61pi%20key=y&r",
                "/v1?q=1&r&api%20key=a%26b%3Dc%20d%21",
            ),
        ] {
            let mut request = request(uri);
            credential.add_to(&mut request).unwrap();
            assert_eq!(request.uri().path_and_query().unwrap(), expected, "{uri}");
        }
    }

    #[test]
    fn request_is_unchanged_if_its_url_would_be_too_long() {
        let credential = RequestCredential::new(
            "token",
            CredentialRule::in_query(origins(), "key"),
            None,
            value("s3cret-value"),
        );
        let uri = format!("https://api.example.com/?q={}", "x".repeat(65_500));
        let mut request = request(&uri);
        assert_eq!(
            credential.add_to(&mut request),
            Err(WithheldCredential::TooLong("token".to_owned()))
        );
        assert_eq!(request.uri(), uri.as_str());
    }

    #[test]
    fn pool_keys_differ_by_caller_and_value() {
        let key = |caller: Option<&str>, text: &str| {
            let caller = caller.map(|name| CallerIdentity::from_name(name).unwrap());
            let mut key = Zeroizing::default();
            let carried = CredentialRule::in_header(origins(), "a", "{}").unwrap();
            RequestCredential::new("token", carried, caller, value(text)).append_pool_key(&mut key);
            key.to_vec()
        };
        let keys = [
            key(None, "s3cret-one"),
            key(None, "s3cret-two"),
            key(Some("token:ada"), "s3cret-one"),
            key(Some("token:bob"), "s3cret-one"),
            key(Some("token:bobs"), "3cret-one"),
        ];
        assert_eq!(
            keys.iter().collect::<std::collections::BTreeSet<_>>().len(),
            keys.len()
        );
        assert_eq!(key(Some("token:ada"), "s3cret-one"), keys[2]);
    }
}
