//! Heads of requests: authorization and encoding.

use http::header::{self, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version, request};
use toolbay_policy::{AuthorityError, DenialReason, HttpRequest, HttpRule, UrlOrigin};

use crate::error::SendError;
use crate::header_fields::{self, MAX_HTTP_HEAD_BYTES};
use crate::proxy::ProxySettings;

/// A request that the rules allow.
#[derive(Debug)]
pub(crate) struct AuthorizedRequest {
    pub(crate) origin: UrlOrigin,
    method: Method,
    path: PathAndQuery,
    /// The guest's fields, without those that apply to a connection.
    fields: HeaderMap,
    /// The length of the body that the guest declares.
    pub(crate) body_length: Option<u64>,
    /// The bytes of the head as HTTP/1.1 writes it.
    pub(crate) head_bytes: usize,
}

impl AuthorizedRequest {
    /// Checks the request, as the guest wrote it, against the rules.
    pub(crate) fn check(parts: request::Parts, rules: &[HttpRule]) -> Result<Self, SendError> {
        let request::Parts {
            method,
            uri,
            headers: mut fields,
            ..
        } = parts;
        let written = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let asked = policy_request(&method, &uri);
        let origin = asked.check(rules).map_err(SendError::Denied)?.origin;
        // Servers and proxies can use either the URL or the field, so both must be the same.
        for host in &fields.get_all(header::HOST) {
            let same = host.to_str().is_ok_and(|authority| {
                HttpRequest { authority, ..asked }
                    .check(rules)
                    .is_ok_and(|other| other.origin == origin)
            });
            if !same {
                return Err(SendError::HostHeader);
            }
        }
        fields.remove(header::HOST);
        header_fields::remove_hop_by_hop(&mut fields);
        let length = declared_length(&fields)?;
        if let Some(length) = length {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let path = match written {
            "*" => PathAndQuery::from_static("*"),
            _ if written.starts_with('/') => written
                .parse()
                .map_err(|_| SendError::Denied(DenialReason::MalformedPath))?,
            _ => format!("/{written}")
                .parse()
                .map_err(|_| SendError::Denied(DenialReason::MalformedPath))?,
        };
        // `GET /path HTTP/1.1`, `host: authority`, the fields, and the empty line.
        let line = method.as_str().len() + path.as_str().len() + " ".len() + " HTTP/1.1\r\n".len();
        let host = "host: \r\n".len() + authority(&origin).len();
        let bytes = line + host + header_fields::encoded_bytes(&fields) + "\r\n".len();
        if bytes > MAX_HTTP_HEAD_BYTES {
            return Err(SendError::RequestHeadTooLarge);
        }
        Ok(Self {
            origin,
            method,
            path,
            fields,
            body_length: length,
            head_bytes: bytes,
        })
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the request in the form for a connection to the origin, or over plain http to a
    /// proxy.
    pub(crate) fn request<B>(
        &self,
        http2: bool,
        proxy: Option<&ProxySettings>,
        body: B,
    ) -> Result<Request<B>, SendError> {
        let malformed = || SendError::Denied(DenialReason::Authority(AuthorityError::Name));
        let authority = authority(&self.origin);
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = self.fields.clone();
        *request.version_mut() = if http2 {
            Version::HTTP_2
        } else {
            Version::HTTP_11
        };
        *request.uri_mut() = if http2 || proxy.is_some() {
            // `*` cannot be in any other part: a URL ends before it (RFC 9112, section 3.2.4).
            let whole = Uri::builder()
                .scheme(self.origin.scheme.as_str())
                .authority(authority.as_str());
            whole
                .path_and_query(self.path.clone())
                .build()
                .map_err(|_| malformed())?
        } else {
            Uri::from(self.path.clone())
        };
        if !http2 {
            let host = HeaderValue::from_str(&authority).map_err(|_| malformed())?;
            request.headers_mut().insert(header::HOST, host);
        }
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            request
                .headers_mut()
                .insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

/// Returns a request in the form that the rules check.
pub fn policy_request<'a>(method: &'a Method, uri: &'a Uri) -> HttpRequest<'a> {
    HttpRequest {
        scheme: uri.scheme_str().unwrap_or_default(),
        authority: uri.authority().map_or("", |authority| authority.as_str()),
        method: method.as_str(),
        path_with_query: uri.path_and_query().map_or("/", PathAndQuery::as_str),
    }
}

/// Returns the host of an origin, with its port unless it is the scheme's default port.
fn authority(origin: &UrlOrigin) -> String {
    if origin.port == origin.scheme.default_port() {
        origin.host.to_string()
    } else {
        format!("{}:{}", origin.host, origin.port)
    }
}

/// Returns the length that `Content-Length` declares. Ambiguous values, which servers could
/// interpret differently, are errors.
fn declared_length(fields: &HeaderMap) -> Result<Option<u64>, SendError> {
    let mut length = None;
    for value in &fields.get_all(header::CONTENT_LENGTH) {
        let digits = value
            .to_str()
            .ok()
            .filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        let value: u64 = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or(SendError::ContentLength)?;
        if length.is_some_and(|length| length != value) {
            return Err(SendError::ContentLength);
        }
        length = Some(value);
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
