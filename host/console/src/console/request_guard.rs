//! Checks of requests before their handlers: permits, sessions and forged forms.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, Method, StatusCode};

use super::console_state::{ConsoleState, SharedConsole};
use super::error_pages::{busy, rejection_page, session_ended};
use crate::form::FieldValues;
use crate::form_body::{read_body, read_form};
use crate::paths::{CSRF_FIELD, PATH};
use crate::request_checks::{cookie, may_change, may_read};
use crate::responses::see_other;
use crate::secret::hash_secret;
use crate::sessions::ConsoleSession;

/// Maximum size of a login form or of another small form, in bytes.
pub(super) const MAX_SMALL_FORM_BYTES: usize = 4 << 10;

/// Header of the script's update requests. If the session has ended, their response is an error
/// instead of a redirect to the login page.
const LIVE_HEADER: HeaderName = HeaderName::from_static("toolbay-live");

/// Limits the number of concurrent requests.
pub(super) async fn limit_requests(
    State(console): SharedConsole,
    request: Request,
    next: Next,
) -> Response {
    let session =
        cookie(request.headers(), &console.cookie_name).and_then(|cookie| console.session(cookie));
    if let Some(session) = session {
        // The permit is held while the body arrives, because the bodies of viewers can be large.
        let Some(_permit) = console.permits.try_acquire(Some(session.permit_owner())) else {
            return busy();
        };
        return next.run(request).await;
    }
    // A body that is still arriving holds no permit, so a slow client does not block others.
    let request = match receive_body(request, console.body_timeout).await {
        Ok(request) => request,
        Err(rejection) => return rejection,
    };
    let Some(_permit) = console
        .login_permits
        .try_acquire((console.remote_address)(request.extensions()))
    else {
        return busy();
    };
    next.run(request).await
}

/// Receives the whole body of a request without a session. The body must arrive within
/// `time_limit`.
async fn receive_body(request: Request, time_limit: Duration) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Ok(Request::from_parts(head, Body::empty()));
    }
    let bytes = read_body(body, MAX_SMALL_FORM_BYTES, time_limit)
        .await
        .map_err(|(status, why)| rejection_page(status, why))?;
    Ok(Request::from_parts(head, bytes.into()))
}

/// Returns the session of a read request, if it has one.
pub(super) fn read_session(console: &ConsoleState, headers: &HeaderMap) -> Option<ConsoleSession> {
    let session =
        console.session(cookie(headers, &console.cookie_name).filter(|_| may_read(headers))?)?;
    Some(console.with_open_approvals(session))
}

/// Returns the response to a read request without a session.
pub(super) fn login_required(headers: &HeaderMap) -> Response {
    if headers.contains_key(LIVE_HEADER) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    see_other(&format!("{PATH}/login"))
}

/// Checks a request that changes state. Returns its session and its form of at most `max_bytes`
/// bytes.
pub(super) async fn check_state_change(
    console: &ConsoleState,
    request: Request,
    max_bytes: usize,
) -> Result<(ConsoleSession, FieldValues), Response> {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        console.rejections.warn(
            (console.remote_address)(&head.extensions),
            "a form of another page",
        );
        return Err(rejection_page(
            StatusCode::FORBIDDEN,
            "This form was not sent by a page of the console.",
        ));
    }
    let session =
        cookie(&head.headers, &console.cookie_name).and_then(|cookie| console.session(cookie));
    session.ok_or_else(session_ended)?;
    let mut form = read_or_reject(&head.headers, body, max_bytes, console.body_timeout).await?;
    // Look up the session again: the body may have been slow, and the current rights apply.
    let session = cookie(&head.headers, &console.cookie_name)
        .and_then(|cookie| console.session(cookie))
        .ok_or_else(session_ended)?;
    let token = form.remove(CSRF_FIELD).unwrap_or_default();
    if hash_secret(&token) != hash_secret(&session.csrf) {
        console.rejections.warn(
            Some(session.viewer.name),
            "a form without the token of its session",
        );
        return Err(rejection_page(
            StatusCode::FORBIDDEN,
            "This form does not belong to your session. Load its page again.",
        ));
    }
    Ok((console.with_open_approvals(session), form))
}

/// Reads a form of at most `max_bytes` bytes, or returns the page for a rejected form.
pub(super) async fn read_or_reject(
    headers: &HeaderMap,
    body: Body,
    max_bytes: usize,
    time_limit: Duration,
) -> Result<FieldValues, Response> {
    read_form(headers, body, max_bytes, time_limit)
        .await
        .map_err(|(status, why)| rejection_page(status, why))
}
