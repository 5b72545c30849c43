//! Checks HTTP requests against the rules.

use crate::authority;
use crate::denial_reason::DenialReason;
use crate::host::NormalizedHost;
use crate::http_rule::HttpRule;
use crate::method::{HttpMethod, MethodError};
use crate::origin::UrlOrigin;
use crate::origin_pattern::OriginPattern;
use crate::path::{self, AmbiguousPath, PathPrefix};
use crate::scheme::UrlScheme;

/// Maximum size of a path that is suggested to the operator as an entry of `paths`, in bytes.
const MAX_SUGGESTED_PATH_BYTES: usize = 200;

/// An outgoing HTTP request, as a guest wrote it. A redirect is a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpRequest<'a> {
    /// The scheme, in upper or lower case.
    pub scheme: &'a str,
    /// Host and port, in any spelling of the URL standard, but without user information or
    /// percent-encoding.
    pub authority: &'a str,
    /// The method. Case is significant.
    pub method: &'a str,
    /// Path and query. An empty path is `/`; OPTIONS can have `*`.
    pub path_with_query: &'a str,
}

/// The target of an allowed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedRequest {
    /// The normalized origin. Connect to its host and port, with TLS if its scheme is https, and
    /// send the same host in the `Host` field. A name of two or more labels is absolute: the
    /// resolver must not append a search domain of the machine. The addresses of a name must still
    /// pass [`filter_addresses`](crate::filter_addresses), and so must an IP literal.
    pub origin: UrlOrigin,
    /// The index of the rule that allows the request.
    pub rule_index: usize,
}

/// A normalized request.
struct NormalizedRequest {
    origin: UrlOrigin,
    method: HttpMethod,
    /// The path without the query.
    path: Result<String, AmbiguousPath>,
}

impl HttpRequest<'_> {
    /// Checks whether a rule allows the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is malformed, or if no rule allows it. In the latter case,
    /// the reason is that of the rule that matches best.
    pub fn check(&self, rules: &[HttpRule]) -> Result<AllowedRequest, DenialReason> {
        let request = self.parse()?;
        let mut closest = match request.origin.host {
            NormalizedHost::Name(_) => DenialReason::Host(request.origin.clone()),
            NormalizedHost::Ip(_) => DenialReason::IpLiteral(request.origin.clone()),
        };
        for (index, rule) in rules.iter().enumerate() {
            match request.check_rule(rule) {
                Ok(()) => {
                    return Ok(AllowedRequest {
                        origin: request.origin,
                        rule_index: index,
                    });
                }
                Err(denial) if closeness(&denial) > closeness(&closest) => closest = denial,
                Err(_) => {}
            }
        }
        Err(closest)
    }

    fn parse(&self) -> Result<NormalizedRequest, DenialReason> {
        let scheme = UrlScheme::parse(self.scheme).ok_or(DenialReason::Scheme)?;
        let (host, port) =
            authority::parse_host_port(self.authority).map_err(DenialReason::Authority)?;
        let method =
            HttpMethod::parse_request_method(self.method).map_err(|error| match error {
                MethodError::Malformed => DenialReason::MalformedMethod,
                MethodError::Forbidden(method) => DenialReason::ForbiddenMethod(method),
            })?;
        let path = self.path_with_query.split('?').next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        // These characters could end the request line.
        let ends_request_line = |c: char| c == ' ' || c == '#' || c.is_control();
        let has_valid_start =
            path.starts_with('/') || (self.path_with_query == "*" && self.method == "OPTIONS");
        if !has_valid_start || self.path_with_query.contains(ends_request_line) {
            return Err(DenialReason::MalformedPath);
        }
        let origin = UrlOrigin {
            scheme,
            host,
            port: port.unwrap_or(scheme.default_port()),
        };
        Ok(NormalizedRequest {
            origin,
            method,
            path: path::normalize_path(path),
        })
    }
}

impl NormalizedRequest {
    /// Checks whether this rule allows the request. The error names the first difference.
    fn check_rule(&self, rule: &HttpRule) -> Result<(), DenialReason> {
        let origin = || self.origin.clone();
        let pattern = rule.origin();
        if !pattern.host().covers(&self.origin.host) {
            return Err(match self.origin.host {
                NormalizedHost::Name(_) => DenialReason::Host(origin()),
                NormalizedHost::Ip(_) => DenialReason::IpLiteral(origin()),
            });
        }
        if pattern.scheme() != self.origin.scheme {
            return Err(DenialReason::OtherScheme(origin()));
        }
        if pattern.port() != self.origin.port {
            return Err(DenialReason::OtherPort(origin()));
        }
        if rule
            .methods()
            .is_some_and(|methods| !methods.contains(&self.method))
        {
            return Err(DenialReason::Method(origin(), self.narrowest_rule()));
        }
        match (rule.paths(), &self.path) {
            (None, _) => Ok(()),
            (Some(_), Err(AmbiguousPath)) => Err(DenialReason::AmbiguousPath(origin())),
            (Some(paths), Ok(path)) if paths.iter().any(|prefix| prefix.covers(path)) => Ok(()),
            (Some(_), Ok(_)) => Err(DenialReason::Path(origin(), self.narrowest_rule())),
        }
    }

    /// Returns a rule that allows only this method at this path of this origin. It is a separate
    /// entry: added to another entry, the method and the path would also allow that entry's other
    /// paths and methods. `None` if the method or the path cannot be an entry of a grant.
    fn narrowest_rule(&self) -> Option<Box<HttpRule>> {
        let method = HttpMethod::parse(self.method.as_str()).ok()?;
        let path = self
            .path
            .as_ref()
            .ok()
            .filter(|path| path.len() <= MAX_SUGGESTED_PATH_BYTES)?;
        let path = PathPrefix::parse(path).ok()?;
        Some(Box::new(HttpRule::for_method_and_path(
            OriginPattern::exact(self.origin.clone()),
            method,
            path,
        )))
    }
}

/// Returns how much of a rule a denied request matched.
fn closeness(denial: &DenialReason) -> u8 {
    match denial {
        DenialReason::OtherScheme(_) => 1,
        DenialReason::OtherPort(_) => 2,
        DenialReason::Method(..) => 3,
        DenialReason::Path(..) | DenialReason::AmbiguousPath(_) => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
