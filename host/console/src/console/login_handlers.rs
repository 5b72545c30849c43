//! Handlers that start and end sessions.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{SET_COOKIE, WWW_AUTHENTICATE};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};

use super::console_state::{ConsoleState, SharedConsole};
use super::error_pages::rejection_page;
use super::request_guard::{
    MAX_SMALL_FORM_BYTES, check_state_change, read_or_reject, read_session,
};
use crate::access::LoginOutcome;
use crate::pages;
use crate::paths::PATH;
use crate::request_checks::{cookie, is_secure, may_change};
use crate::responses::{page, see_other};

/// Shows the login page.
pub(super) async fn login(State(console): SharedConsole, headers: HeaderMap) -> Response {
    if read_session(&console, &headers).is_some() {
        return see_other(PATH);
    }
    page(
        StatusCode::OK,
        pages::login(console.access.token_advice(), None),
    )
}

/// Exchanges a token for a session.
pub(super) async fn log_in(State(console): SharedConsole, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        console.rejections.warn(
            (console.remote_address)(&head.extensions),
            "a login of another page",
        );
        return rejection_page(
            StatusCode::FORBIDDEN,
            "This form was not sent by a page of the console.",
        );
    }
    let form = match read_or_reject(
        &head.headers,
        body,
        MAX_SMALL_FORM_BYTES,
        console.body_timeout,
    )
    .await
    {
        Ok(form) => form,
        Err(rejection) => return rejection,
    };
    let token = form
        .get("token")
        .map(|token| token.trim())
        .unwrap_or_default();
    let (viewer, proof) = match console.access.authenticate(token) {
        LoginOutcome::Admitted(viewer, proof) => (viewer, proof),
        LoginOutcome::NotOperator(name) => {
            console.rejections.warn(
                (console.remote_address)(&head.extensions),
                "a login with a token without admin = true",
            );
            return page(StatusCode::FORBIDDEN, pages::no_right(&name));
        }
        LoginOutcome::Invalid => return wrong_token(&console, &head.extensions),
    };
    tracing::info!(viewer = viewer.name, "console: opened");
    // End the previous session of this browser.
    if let Some(previous) = cookie(&head.headers, &console.cookie_name) {
        console.sessions.end(previous);
    }
    match console.sessions.start(viewer, proof) {
        Some(value) => redirect_with_cookie(
            &console,
            &value,
            console.sessions.max_age(),
            is_secure(&head.headers),
        ),
        None => rejection_page(
            StatusCode::SERVICE_UNAVAILABLE,
            "The system provides no random bytes.",
        ),
    }
}

/// Returns the response to a login with a wrong token.
fn wrong_token(console: &ConsoleState, extensions: &Extensions) -> Response {
    console.rejections.warn(
        (console.remote_address)(extensions),
        "a login with a wrong or used token",
    );
    let why = "This token is wrong or was used before.";
    let mut response = page(
        StatusCode::UNAUTHORIZED,
        pages::login(console.access.token_advice(), Some(why)),
    );
    response.headers_mut().insert(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Toolbay-Console"),
    );
    response
}

/// Ends the session of the browser.
pub(super) async fn log_out(State(console): SharedConsole, request: Request) -> Response {
    let headers = request.headers().clone();
    if let Err(rejection) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await {
        return rejection;
    }
    if let Some(value) = cookie(&headers, &console.cookie_name) {
        console.sessions.end(value);
    }
    redirect_with_cookie(&console, "", Duration::ZERO, is_secure(&headers))
}

/// Redirects to the console and sets its cookie.
fn redirect_with_cookie(
    console: &ConsoleState,
    value: &str,
    max_age: Duration,
    uses_tls: bool,
) -> Response {
    let secure_attribute = if uses_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{}={value}; Path={PATH}; Max-Age={}; HttpOnly; SameSite=Strict{secure_attribute}",
        console.cookie_name,
        max_age.as_secs()
    );
    let mut response = see_other(PATH);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
