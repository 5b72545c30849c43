//! Targets of requests: the check of a request, and its address on a connection.

use http::header::{self, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};
use toolbay_policy::{AuthorityError, DenialReason, HttpRequest, HttpRule, UrlOrigin};

use crate::error::SendError;
use crate::header_fields::{self, MAX_HTTP_HEAD_BYTES};
use crate::proxy::ProxySettings;

/// The checked target of a request, and the length of its body.
#[derive(Debug)]
pub(crate) struct RequestTarget {
    pub(crate) origin: UrlOrigin,
    path: PathAndQuery,
    /// The length of the body that the guest declares.
    pub(crate) body_length: Option<u64>,
}

impl RequestTarget {
    /// Checks the request, as the guest wrote it, against the rules. Removes the fields that apply
    /// to a connection, and `Host`, from the request.
    pub(crate) fn check<B>(
        request: &mut Request<B>,
        rules: &[HttpRule],
    ) -> Result<Self, SendError> {
        let asked = policy_request(request.method(), request.uri());
        let origin = asked.check(rules).map_err(SendError::Denied)?.origin;
        // Servers and proxies can use either the URL or the field, so both must be the same.
        for host in &request.headers().get_all(header::HOST) {
            let same = host.to_str().is_ok_and(|authority| {
                HttpRequest { authority, ..asked }
                    .check(rules)
                    .is_ok_and(|other| other.origin == origin)
            });
            if !same {
                return Err(SendError::HostHeader);
            }
        }
        let fields = request.headers_mut();
        fields.remove(header::HOST);
        header_fields::remove_hop_by_hop(fields);
        let length = declared_length(fields)?;
        if let Some(length) = length {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let path = match request.uri().path_and_query() {
            Some(written) => with_root(written)?,
            None => PathAndQuery::from_static("/"),
        };
        Ok(Self {
            origin,
            path,
            body_length: length,
        })
    }

    /// Replaces the query by that of `other`, which must have the same path.
    pub(crate) fn replace_query(&mut self, other: &PathAndQuery) -> Result<(), SendError> {
        if other.path() != self.path.path() {
            return Err(SendError::Denied(DenialReason::MalformedPath));
        }
        self.path = with_root(other)?;
        Ok(())
    }

    /// Returns the bytes of the head as HTTP/1.1 writes it, or an error if it is too large.
    pub(crate) fn head_bytes<B>(&self, request: &Request<B>) -> Result<usize, SendError> {
        // `GET /path HTTP/1.1`, `host: authority`, the fields, and the empty line.
        let method = request.method().as_str();
        let path = self.path.as_str();
        let line = method.len() + path.len() + " ".len() + " HTTP/1.1\r\n".len();
        let host = "host: \r\n".len() + authority(&self.origin).len();
        let fields = header_fields::encoded_bytes(request.headers());
        let bytes = line + host + fields + "\r\n".len();
        if bytes > MAX_HTTP_HEAD_BYTES {
            return Err(SendError::RequestHeadTooLarge);
        }
        Ok(bytes)
    }

    /// Addresses the request to a connection to the origin, or over plain http to a proxy. The
    /// request can have been addressed to another connection before.
    pub(crate) fn address<B>(
        &self,
        request: &mut Request<B>,
        http2: bool,
        proxy: Option<&ProxySettings>,
    ) -> Result<(), SendError> {
        let malformed = || SendError::Denied(DenialReason::Authority(AuthorityError::Name));
        let authority = authority(&self.origin);
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
        if http2 {
            request.headers_mut().remove(header::HOST);
        } else {
            let host = HeaderValue::from_str(&authority).map_err(|_| malformed())?;
            request.headers_mut().insert(header::HOST, host);
        }
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            request
                .headers_mut()
                .insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(())
    }
}

/// Returns a path as a request has it: without a path before its query, it is `/`.
fn with_root(written: &PathAndQuery) -> Result<PathAndQuery, SendError> {
    let malformed = |_| SendError::Denied(DenialReason::MalformedPath);
    match written.as_str() {
        "*" => Ok(PathAndQuery::from_static("*")),
        // Parsed again, because an empty path is shown as `/`, and is empty in a request line.
        text if text.starts_with('/') => text.parse().map_err(malformed),
        text => format!("/{text}").parse().map_err(malformed),
    }
}

/// Returns the reason why a plugin without rules may not send a request.
pub(crate) fn denial_without_rules(method: &Method, uri: &Uri) -> DenialReason {
    match policy_request(method, uri).check(&[]) {
        Err(denied) => denied,
        Ok(allowed) => DenialReason::Host(allowed.origin),
    }
}

/// Returns a request in the form that the rules check.
fn policy_request<'a>(method: &'a Method, uri: &'a Uri) -> HttpRequest<'a> {
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
        let value = header_fields::parse_content_length(value).ok_or(SendError::ContentLength)?;
        if length.is_some_and(|length| length != value) {
            return Err(SendError::ContentLength);
        }
        length = Some(value);
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
