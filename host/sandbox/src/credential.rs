//! Secrets that the host adds to a plugin's requests. The guest never has them.

use std::fmt;

use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolbay_policy::{Origin, OriginPattern};

/// The characters that a query parameter can have as they are (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A secret that requests to some origins carry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    name: String,
    origins: Vec<OriginPattern>,
    place: Place,
}

/// Where a request carries it.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    Header(HeaderName, HeaderValue),
    /// The name and the value of a query parameter, both encoded.
    Query(String, String),
}

impl Credential {
    /// The secret `name`, whose value requests to `origins` carry as this header.
    ///
    /// # Errors
    ///
    /// The header cannot have this name or value. The text does not repeat the value.
    pub fn in_header(name: &str, origins: Vec<OriginPattern>, header: &str, value: &str) -> Result<Self, String> {
        let header: HeaderName = header.parse().map_err(|_| format!("{header:?} is not the name of a header"))?;
        let mut value: HeaderValue = value
            .parse()
            .map_err(|_| "its value cannot be a header: it has line ends or control characters".to_owned())?;
        value.set_sensitive(true);
        Ok(Self { name: name.to_owned(), origins, place: Place::Header(header, value) })
    }

    /// The secret `name`, whose value requests to `origins` carry as this query parameter.
    pub fn in_query(name: &str, origins: Vec<OriginPattern>, parameter: &str, value: &str) -> Self {
        let encoded = |text: &str| utf8_percent_encode(text, UNRESERVED).to_string();
        Self { name: name.to_owned(), origins, place: Place::Query(encoded(parameter), encoded(value)) }
    }

    /// Whether requests to this origin carry it.
    pub(crate) fn is_for(&self, origin: &Origin) -> bool {
        self.origins.iter().any(|pattern| pattern.covers(origin))
    }

    /// Adds it to a request, in the place of whatever the guest put there.
    pub(crate) fn add_to<B>(&self, request: &mut Request<B>) {
        match &self.place {
            Place::Header(name, value) => drop(request.headers_mut().insert(name, value.clone())),
            Place::Query(name, value) => {
                if let Some(uri) = with_parameter(request.uri(), name, value) {
                    *request.uri_mut() = uri;
                }
            }
        }
    }

    /// What separates the connections that carry it from others.
    pub(crate) fn key(&self) -> &[u8] {
        match &self.place {
            Place::Header(_, value) => value.as_bytes(),
            Place::Query(_, value) => value.as_bytes(),
        }
    }
}

/// The URI with one parameter of this name, the last. `None` if it would be too long.
fn with_parameter(uri: &Uri, name: &str, value: &str) -> Option<Uri> {
    let is_other = |pair: &&str| {
        let own = pair.split('=').next().unwrap_or_default().replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&own).decode_utf8_lossy().into_owned();
        !pair.is_empty() && utf8_percent_encode(&decoded, UNRESERVED).to_string() != name
    };
    let own = format!("{name}={value}");
    let pairs: Vec<&str> = uri.query().unwrap_or_default().split('&').filter(is_other).chain([own.as_str()]).collect();
    let path = PathAndQuery::try_from(format!("{}?{}", uri.path(), pairs.join("&"))).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

/// What it is for, without its value: `github_token as the header authorization, at https://api.github.com`.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins: Vec<String> = self.origins.iter().map(ToString::to_string).collect();
        let origins = origins.join(", ");
        match &self.place {
            Place::Header(header, _) => write!(f, "{} as the header {header}, at {origins}", self.name),
            Place::Query(parameter, _) => write!(f, "{} as the query parameter {parameter}, at {origins}", self.name),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins() -> Vec<OriginPattern> {
        vec![OriginPattern::parse("https://api.example.com").unwrap()]
    }

    fn sent(credential: &Credential, uri: &str) -> Request<()> {
        let mut request = Request::builder().uri(uri).header("x-key", "the guest's").header("x-key", "twice");
        let mut request = request.headers_mut().map(|_| ()).and(Some(request)).unwrap().body(()).unwrap();
        credential.add_to(&mut request);
        request
    }

    #[test]
    fn a_header_replaces_what_the_guest_put_there() {
        let credential = Credential::in_header("token", origins(), "X-Key", "Bearer s3cret-value").unwrap();
        let request = sent(&credential, "https://api.example.com/");
        let values: Vec<_> = request.headers().get_all("x-key").iter().collect();
        assert_eq!(values, ["Bearer s3cret-value"]);
        assert!(!format!("{request:?} {credential:?} {credential}").contains("s3cret"));
        assert!(Credential::in_header("token", origins(), "a b", "x").is_err());
        assert!(!Credential::in_header("token", origins(), "a", "s3cret\r\nx: y").unwrap_err().contains("s3cret"));
    }

    #[test]
    fn a_parameter_replaces_what_the_guest_put_there() {
        let credential = Credential::in_query("token", origins(), "api key", "a&b=c");
        for (uri, expected) in [
            ("https://api.example.com", "/?api%20key=a%26b%3Dc"),
            ("https://api.example.com/v1?", "/v1?api%20key=a%26b%3Dc"),
            ("https://api.example.com/v1?q=1&api+key=x&%61pi%20key=y&r", "/v1?q=1&r&api%20key=a%26b%3Dc"),
        ] {
            assert_eq!(sent(&credential, uri).uri().path_and_query().unwrap(), expected, "{uri}");
        }
    }
}
