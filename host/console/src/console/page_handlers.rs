//! Handlers of the pages.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use maud::Markup;
use serde_json::json;

use super::console_state::{ConsoleState, SharedConsole};
use super::error_pages::not_found_page;
use super::request_guard::{login_required, read_session};
use crate::call_export::{export_csv, export_json_lines};
use crate::call_filter::CallFilter;
use crate::call_note::CallNote;
use crate::chart_history::ChartRange;
use crate::form::{FieldValues, value_or_empty};
use crate::page_context::PageContext;
use crate::pages;
use crate::responses::{file_download, page};
use crate::sessions::{ConsoleSession, OpenApprovals};

/// The parsed query string; empty if there is none.
type QueryValue = Query<FieldValues>;

/// Renders a page on a blocking thread. With thousands of plugins this takes milliseconds, and the
/// async thread has calls to serve.
async fn render_blocking(
    console: &Arc<ConsoleState>,
    headers: &HeaderMap,
    render: impl FnOnce(&PageContext, &ConsoleSession) -> Response + Send + 'static,
) -> Response {
    let Some(session) = read_session(console, headers) else {
        return login_required(headers);
    };
    let owned_console = Arc::clone(console);
    let rendering = tokio::task::spawn_blocking(move || render(&owned_console.context, &session));
    rendering
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn ok_page(markup: Markup) -> Response {
    page(StatusCode::OK, markup)
}

pub(super) async fn overview(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        let range = ChartRange::parse(value_or_empty(&query, "range"));
        ok_page(pages::overview(
            context,
            session,
            action_notice(&query),
            range,
        ))
    })
    .await
}

pub(super) async fn plugins(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        ok_page(pages::plugins(
            context,
            session,
            value_or_empty(&query, "q"),
        ))
    })
    .await
}

pub(super) async fn plugin(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    let render = move |context: &PageContext, session: &ConsoleSession| match context
        .operations
        .plugin(value_or_empty(&query, "id"))
    {
        Some(detail) => ok_page(pages::plugin(
            context,
            session,
            &detail,
            action_notice(&query),
        )),
        None => not_found_page(session, "plugin"),
    };
    render_blocking(&console, &headers, render).await
}

pub(super) async fn held_version(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        match context
            .operations
            .held_version(value_or_empty(&query, "id"))
        {
            Some(held) => ok_page(pages::held_version(session, &held, None)),
            None => not_found_page(session, "held version"),
        }
    })
    .await
}

pub(super) async fn tools(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    let offset = value_or_empty(&query, "from").parse().unwrap_or_default();
    render_blocking(&console, &headers, move |context, session| {
        ok_page(pages::tools(
            context,
            session,
            value_or_empty(&query, "q"),
            offset,
        ))
    })
    .await
}

pub(super) async fn tool(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    let render = move |context: &PageContext, session: &ConsoleSession| {
        let Some(detail) = context.operations.tool(value_or_empty(&query, "name")) else {
            return not_found_page(session, "tool");
        };
        let may_call = context
            .operations
            .may_use(&session.viewer, &detail.row.name);
        let trial = pages::ToolTrial::unsubmitted(&detail, query.contains_key("json"));
        ok_page(pages::tool(session, &detail, may_call, &trial))
    };
    render_blocking(&console, &headers, render).await
}

pub(super) async fn calls(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        let filter = CallFilter::from_values(&query);
        ok_page(pages::calls(
            context,
            session,
            &filter,
            action_notice(&query),
        ))
    })
    .await
}

pub(super) async fn call(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        let id = value_or_empty(&query, "id").parse().unwrap_or_default();
        let (is_known, markup) = pages::call(context, session, id);
        let status = if is_known {
            StatusCode::OK
        } else {
            StatusCode::NOT_FOUND
        };
        page(status, markup)
    })
    .await
}

/// Returns the selected calls as CSV.
pub(super) async fn calls_csv(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    export_calls(&console, &headers, query, "csv").await
}

/// Returns the selected calls as JSON Lines.
pub(super) async fn calls_json_lines(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    export_calls(&console, &headers, query, "jsonl").await
}

async fn export_calls(
    console: &Arc<ConsoleState>,
    headers: &HeaderMap,
    query: FieldValues,
    extension: &'static str,
) -> Response {
    render_blocking(console, headers, move |context, session| {
        let filter = CallFilter::from_values(&query);
        let stored: Vec<Arc<CallNote>> =
            context.activity.lock_history().newest().cloned().collect();
        let (calls, _) = filter.select(stored.iter());
        let may_view = |call: &CallNote| context.operations.may_use(&session.viewer, &call.tool);
        if let Some(mistake) = filter.mistakes.first() {
            return (StatusCode::BAD_REQUEST, format!("{mistake}\n")).into_response();
        }
        let (media_type, text) = match extension {
            "csv" => ("text/csv; charset=utf-8", export_csv(&calls, may_view)),
            _ => (
                "application/jsonl; charset=utf-8",
                export_json_lines(&calls, may_view),
            ),
        };
        file_download(media_type, &format!("calls.{extension}"), text)
    })
    .await
}

pub(super) async fn denied(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        let plugin = value_or_empty(&query, "plugin");
        ok_page(pages::denied(context, session, plugin))
    })
    .await
}

/// Returns the page for an address that is not one of the console.
pub(super) async fn unknown_page(State(console): SharedConsole, headers: HeaderMap) -> Response {
    render_blocking(&console, &headers, |_, session| {
        page(StatusCode::NOT_FOUND, pages::unknown_page(session))
    })
    .await
}

pub(super) async fn approvals(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        ok_page(pages::approvals(context, session, action_notice(&query)))
    })
    .await
}

/// Returns the number of calls that the viewer can answer, and the number of the newest one, as
/// JSON.
pub(super) async fn waiting(State(console): SharedConsole, headers: HeaderMap) -> Response {
    match read_session(&console, &headers) {
        Some(session) => {
            let OpenApprovals { count, newest } = session.open_approvals;
            let text = json!({"count": count, "newest": newest}).to_string();
            ([(CONTENT_TYPE, "application/json")], text).into_response()
        }
        None => login_required(&headers),
    }
}

pub(super) async fn audit(State(console): SharedConsole, headers: HeaderMap) -> Response {
    if read_session(&console, &headers).is_none() {
        return login_required(&headers);
    }
    let lines = console
        .context
        .operations
        .audit_lines(pages::MAX_AUDIT_LINES)
        .await;
    render_blocking(&console, &headers, move |_, session| {
        ok_page(pages::audit(session, lines.as_ref()))
    })
    .await
}

pub(super) async fn log(
    State(console): SharedConsole,
    headers: HeaderMap,
    Query(query): QueryValue,
) -> Response {
    render_blocking(&console, &headers, move |context, session| {
        ok_page(pages::log(context, session, value_or_empty(&query, "q")))
    })
    .await
}

/// Returns the notice after a form was submitted. Only these fixed texts can appear, so a crafted
/// URL cannot place text on a page.
fn action_notice(query: &FieldValues) -> Option<&'static str> {
    Some(match value_or_empty(query, "done") {
        "disabled" => {
            "The plugin is disabled: it rejects all calls until you enable it, or until it is loaded again."
        }
        "enabled" => "The plugin is enabled: it serves calls again, those of all callers.",
        "version-approved" => {
            "You have approved the version. The server loads it now, and it is in service after a moment."
        }
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
        "stopped" => "The call was stopped. Its client receives an error that says so.",
        "call-ended" => "The call had ended already. Nothing was stopped.",
        "cleared" => {
            "The compile cache was cleared. Components are compiled again when they are needed."
        }
        "uncleared" => "The compile cache could not be cleared. The log states the reason.",
        _ => return None,
    })
}
