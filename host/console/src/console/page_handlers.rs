//! Handlers of the pages.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use maud::Markup;

use super::console_state::{ConsoleState, SharedConsole};
use super::error_pages::not_found_page;
use super::request_guard::{login_required, read_session};
use crate::form::{FieldValues, value_or_empty};
use crate::page_context::PageContext;
use crate::pages;
use crate::responses::page;
use crate::sessions::ConsoleSession;

/// The parsed query string; empty if there is none.
type QueryValue = Query<FieldValues>;

/// Renders a page on a blocking thread. With thousands of plugins this takes milliseconds, and the
/// async thread has calls to serve.
async fn render_blocking(
    inner: &Arc<ConsoleState>,
    headers: &HeaderMap,
    write: impl FnOnce(&PageContext, &ConsoleSession) -> Response + Send + 'static,
) -> Response {
    let Some(session) = read_session(inner, headers) else {
        return login_required(headers);
    };
    let inner = Arc::clone(inner);
    let writing = tokio::task::spawn_blocking(move || write(&inner.context, &session));
    writing
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn ok_page(markup: Markup) -> Response {
    page(StatusCode::OK, markup)
}

pub(super) async fn overview(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::overview(desk, session, action_notice(&asked)))
    })
    .await
}

pub(super) async fn plugins(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::plugins(desk, session, value_or_empty(&asked, "q")))
    })
    .await
}

pub(super) async fn plugin(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| match desk
        .operations
        .plugin(value_or_empty(&asked, "id"))
    {
        Some(detail) => ok_page(pages::plugin(session, &detail, action_notice(&asked))),
        None => not_found_page(session, "plugin"),
    };
    render_blocking(&inner, &headers, write).await
}

pub(super) async fn tools(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let from = value_or_empty(&asked, "from").parse().unwrap_or_default();
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::tools(
            desk,
            session,
            value_or_empty(&asked, "q"),
            from,
        ))
    })
    .await
}

pub(super) async fn tool(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| {
        let Some(detail) = desk.operations.tool(value_or_empty(&asked, "name")) else {
            return not_found_page(session, "tool");
        };
        let may_call = desk.operations.may_use(&session.viewer, &detail.row.name);
        let tried = pages::ToolTrial::unsubmitted(&detail, asked.contains_key("json"));
        ok_page(pages::tool(session, &detail, may_call, &tried))
    };
    render_blocking(&inner, &headers, write).await
}

pub(super) async fn calls(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let failed = asked.contains_key("failed");
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::calls(
            desk,
            session,
            value_or_empty(&asked, "q"),
            failed,
        ))
    })
    .await
}

pub(super) async fn denied(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    render_blocking(&inner, &headers, |desk, session| {
        ok_page(pages::denied(desk, session))
    })
    .await
}

pub(super) async fn approvals(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::approvals(desk, session, action_notice(&asked)))
    })
    .await
}

pub(super) async fn audit(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    if read_session(&inner, &headers).is_none() {
        return login_required(&headers);
    }
    let lines = inner
        .context
        .operations
        .audit_lines(pages::MAX_AUDIT_LINES)
        .await;
    render_blocking(&inner, &headers, move |_, session| {
        ok_page(pages::audit(session, lines.as_ref()))
    })
    .await
}

pub(super) async fn log(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::log(desk, session, value_or_empty(&asked, "q")))
    })
    .await
}

/// Returns the notice after a form was submitted. Only these fixed texts can appear, so a crafted
/// URL cannot place text on a page.
fn action_notice(asked: &FieldValues) -> Option<&'static str> {
    Some(match value_or_empty(asked, "done") {
        "disabled" => {
            "The plugin is disabled: it rejects all calls until you enable it, or until it is loaded again."
        }
        "enabled" => "The plugin is enabled: it serves calls again, those of all callers.",
        "approved" => {
            "You have allowed the call. It continues, and the question is withdrawn from the client."
        }
        "outdated" => {
            "You have allowed the call, but its plugin or grant has changed since it was asked for. So it fails, and its client \
             can call again. The question is withdrawn from the client."
        }
        "plugin-disabled" => {
            "You have allowed the call, but its plugin is disabled. So it is rejected. The question is withdrawn from the client."
        }
        "declined" => {
            "You have declined the call. It has failed, and the question is withdrawn from the client."
        }
        "cleared" => {
            "The compile cache was cleared. Components are compiled again when they are needed."
        }
        "uncleared" => "The compile cache could not be cleared. The log states the reason.",
        _ => return None,
    })
}
