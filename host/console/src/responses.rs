//! Responses of the console, with their common security headers.

use axum::response::{IntoResponse as _, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};
use maud::Markup;

/// The content security policy. Pages only load files of the console. Images of results are
/// embedded in the page.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types toolbay";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// The headers of every response. The referrer policy is not `no-referrer`, because browsers would
/// then send `Origin: null` with the console's own forms. `same-origin` sends no referrer to other
/// sites either.
const SECURITY_HEADERS: [(HeaderName, &str); 8] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (OPENER_POLICY, "same-origin"),
    (RESOURCE_POLICY, "same-origin"),
    (
        PERMISSIONS_POLICY,
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// Adds the common headers that the response does not have.
pub(crate) fn with_security_headers(mut response: Response) -> Response {
    for (name, value) in SECURITY_HEADERS {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Returns a response with an HTML page.
pub(crate) fn page(status: StatusCode, markup: Markup) -> Response {
    (
        status,
        [(CONTENT_TYPE, "text/html; charset=utf-8")],
        markup.into_string(),
    )
        .into_response()
}

/// Returns a response that a browser saves as a file with this name.
pub(crate) fn file_download(media_type: &'static str, name: &str, content: String) -> Response {
    (
        [
            (CONTENT_TYPE, media_type.to_owned()),
            (
                CONTENT_DISPOSITION,
                format!("attachment; filename=\"{name}\""),
            ),
        ],
        content,
    )
        .into_response()
}

/// Redirects to a path of the console, also after a form.
pub(crate) fn see_other(path: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(path) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}
