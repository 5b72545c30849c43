//! Handlers of the forms: tool calls, approvals of calls and of versions, suspension of plugins and the
//! compile cache.

use axum::extract::{self, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use toolbay_model::Digest;

use super::console_state::SharedConsole;
use super::error_pages::{not_found_page, rejection_page};
use super::request_guard::{MAX_SMALL_FORM_BYTES, check_state_change};
use crate::form::value_or_empty;
use crate::formatting::encode_query;
use crate::pages;
use crate::paths::PATH;
use crate::responses::{page, see_other};
use crate::server_data::{ApprovalOutcome, VersionApprovalOutcome};

/// Maximum size of a form with tool arguments, in bytes.
const MAX_ARGUMENTS_FORM_BYTES: usize = 1 << 20;

/// Calls a tool with the submitted arguments.
pub(super) async fn call_tool(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&console, request, MAX_ARGUMENTS_FORM_BYTES).await?;
    let name = value_or_empty(&form, "tool");
    let Some(detail) = console.context.operations.tool(name) else {
        return Ok(not_found_page(&session, "tool"));
    };
    let may_call = console.context.operations.may_use(&session.viewer, name);
    let trial = if may_call {
        pages::ToolTrial::call(&*console.context.operations, &session, &detail, form).await
    } else {
        pages::ToolTrial::unsubmitted(&detail, form.contains_key("raw"))
    };
    let status = if may_call {
        StatusCode::OK
    } else {
        StatusCode::FORBIDDEN
    };
    let rendering = tokio::task::spawn_blocking(move || {
        page(status, pages::tool(&session, &detail, may_call, &trial))
    });
    Ok(rendering
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()))
}

/// Suspends or resumes a plugin.
pub(super) async fn set_plugin_suspended(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await?;
    let id = value_or_empty(&form, "id");
    let suspends = value_or_empty(&form, "disabled") == "yes";
    if !console
        .context
        .operations
        .set_suspended(&session.viewer, id, suspends)
    {
        return Ok(not_found_page(&session, "plugin"));
    }
    let action = if suspends { "disabled" } else { "enabled" };
    tracing::info!(
        viewer = session.viewer.name,
        plugin = id,
        "console: the plugin was {action}"
    );
    Ok(see_other(&format!(
        "{PATH}/plugin?{}",
        encode_query(&[("id", id), ("done", action)])
    )))
}

/// Approves a held version, if it is the one that the page with the form showed.
pub(super) async fn approve_version(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await?;
    let id = value_or_empty(&form, "id").to_owned();
    let base = match value_or_empty(&form, "base") {
        "" => Some(None),
        base => Digest::from_hex(base).map(Some),
    };
    let version = Digest::from_hex(value_or_empty(&form, "version"));
    let (Some(base), Some(version)) = (base, version) else {
        return Err(rejection_page(
            StatusCode::BAD_REQUEST,
            "The form does not name a version. Load its page again.",
        ));
    };
    let operations = &console.context.operations;
    let notice = match operations
        .approve_version(&session.viewer, &id, base, version)
        .await
    {
        VersionApprovalOutcome::Done => {
            tracing::info!(
                viewer = session.viewer.name,
                plugin = id,
                %version,
                "console: a held version was approved"
            );
            return Ok(see_other(&format!(
                "{PATH}/plugin?{}",
                encode_query(&[("id", &id), ("done", "version-approved")])
            )));
        }
        VersionApprovalOutcome::Changed => {
            "Nothing was approved: the plugin or toolbay.lock has changed since you loaded the page. This is the present difference."
                .to_owned()
        }
        VersionApprovalOutcome::Refused(why) => format!("Nothing was approved: {why}."),
    };
    let rendering =
        tokio::task::spawn_blocking(move || match console.context.operations.held_version(&id) {
            Some(held) => page(
                StatusCode::CONFLICT,
                pages::held_version(&session, &held, Some(&notice)),
            ),
            None => page(StatusCode::CONFLICT, pages::no_longer_held(&session, &id)),
        });
    Ok(rendering
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()))
}

/// Approves or declines a waiting call.
pub(super) async fn answer_approval(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await?;
    let is_approved = match value_or_empty(&form, "answer") {
        "approve" => true,
        "decline" => false,
        _ => {
            return Err(rejection_page(
                StatusCode::BAD_REQUEST,
                "The form has neither yes nor no.",
            ));
        }
    };
    let id = value_or_empty(&form, "id").parse().unwrap_or_default();
    match console
        .context
        .operations
        .answer_approval(&session.viewer, id, is_approved)
        .await
    {
        outcome @ (ApprovalOutcome::Done
        | ApprovalOutcome::Outdated
        | ApprovalOutcome::Suspended) => {
            let decision = if is_approved { "approved" } else { "declined" };
            tracing::info!(
                viewer = session.viewer.name,
                "console: a call that waited was {decision}"
            );
            let notice = match outcome {
                ApprovalOutcome::Outdated => "outdated",
                ApprovalOutcome::Suspended => "plugin-disabled",
                _ => decision,
            };
            Ok(see_other(&format!("{PATH}/approvals?done={notice}")))
        }
        ApprovalOutcome::Gone => Ok(page(StatusCode::CONFLICT, pages::too_late(&session))),
        ApprovalOutcome::Forbidden => Err(rejection_page(
            StatusCode::FORBIDDEN,
            "Your token may not call this tool, so it cannot allow a call of it either.",
        )),
    }
}

/// Stops a running call.
pub(super) async fn stop_call(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await?;
    let id = value_or_empty(&form, "id").parse().unwrap_or_default();
    let running = console.context.activity.lock_running().get(id).cloned();
    let Some(call) = running else {
        return Ok(see_other(&format!("{PATH}/calls?done=call-ended")));
    };
    if !console
        .context
        .operations
        .may_use(&session.viewer, &call.tool)
    {
        return Err(rejection_page(
            StatusCode::FORBIDDEN,
            "Your token may not call this tool, so it cannot stop a call of it either.",
        ));
    }
    let notice = if console.context.operations.stop_call(&session.viewer, id) {
        tracing::info!(
            viewer = session.viewer.name,
            tool = call.tool,
            caller = call.caller,
            "console: a running call was stopped"
        );
        "stopped"
    } else {
        "call-ended"
    };
    Ok(see_other(&format!("{PATH}/calls?done={notice}")))
}

/// Empties the compile cache.
pub(super) async fn clear_cache(
    State(console): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, _) = check_state_change(&console, request, MAX_SMALL_FORM_BYTES).await?;
    let notice = match console
        .context
        .operations
        .clear_cache(&session.viewer)
        .await
    {
        Ok(cleared) => {
            let components = cleared.components;
            let bytes = cleared.bytes;
            tracing::info!(
                viewer = session.viewer.name,
                components,
                bytes,
                "console: the compile cache was cleared"
            );
            "cleared"
        }
        Err(why) => {
            tracing::warn!(
                viewer = session.viewer.name,
                "console: the compile cache could not be cleared: {why}"
            );
            "uncleared"
        }
    };
    Ok(see_other(&format!("{PATH}?done={notice}")))
}
