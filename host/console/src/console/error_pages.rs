//! Responses to requests that are rejected or name something unknown.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

use crate::pages;
use crate::responses::page;
use crate::sessions::ConsoleSession;

/// Returns the response to a request beyond the limit of concurrent ones.
pub(super) fn busy() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "the console is busy; retry later\n",
    )
        .into_response()
}

/// Returns the page for a form whose session has ended.
pub(super) fn session_ended() -> Response {
    rejection_page(
        StatusCode::UNAUTHORIZED,
        "Your session has ended. Open the console again, and repeat it.",
    )
}

/// Returns the page for a rejected form.
pub(super) fn rejection_page(status: StatusCode, why: &str) -> Response {
    page(status, pages::rejected_form(why))
}

/// Returns the page for an unknown plugin or tool.
pub(super) fn not_found_page(session: &ConsoleSession, item_kind: &str) -> Response {
    page(StatusCode::NOT_FOUND, pages::not_found(session, item_kind))
}
