//! Responses to the requests that do not enter a plugin.

use serde_json::value::RawValue;

use crate::dispatch::methods::list_prompts::PromptList;
use crate::dispatch::methods::list_resources::ResourceList;
use crate::dispatch::methods::list_skills::SkillList;
use crate::dispatch::methods::list_templates::TemplateList;
use crate::dispatch::methods::list_tools::ToolList;
use crate::dispatch::methods::{
    MethodResult, cancel_task, discover, get_skill, get_task, initialize, list_tasks, ping,
    read_folder, set_level, subscribe, update_task,
};
use crate::dispatch::paging::{self, ListResult};
use crate::exchange::outbox::OutgoingMessage;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{self, Error, Request};
use crate::protocol::message_context::{RequestContext, missing_session};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;

/// Returns the response to a request that does not enter a plugin.
pub(super) async fn respond(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    method: McpMethod,
    context: Option<RequestContext>,
) -> OutgoingMessage {
    let revision = context.as_ref().map(|rules| rules.revision);
    let params = request.params;
    if let (McpMethod::GetTask, Some(context)) = (method, &context) {
        let task_response = get_task::answer(session, caller, &request.id, params, context).await;
        return task_response
            .unwrap_or_else(|error| session.encode_rejection(&error.with_id(&request.id)));
    }
    let outcome: MethodResult = match (method, revision) {
        (McpMethod::Initialize, _) => initialize::answer(session, caller, params).await,
        (McpMethod::Ping, _) => ping::answer(params),
        (McpMethod::SetLevel, _) => set_level::answer(session, params),
        (McpMethod::Discover, Some(revision)) => discover::answer(session, caller, revision).await,
        (McpMethod::Subscribe, Some(revision)) => {
            subscribe::subscribe(session, caller, params, revision).await
        }
        (McpMethod::CancelTask, _) if let Some(context) = &context => {
            cancel_task::answer(session, caller, params, context).await
        }
        (McpMethod::UpdateTask, _) if let Some(context) = &context => {
            update_task::answer(session, caller, params, context).await
        }
        (McpMethod::ListTasks, Some(revision)) => {
            list_tasks::answer(session, caller, params, revision).await
        }
        (McpMethod::Unsubscribe, _) => subscribe::unsubscribe(session, params),
        (method, Some(revision)) => {
            match answer_list(session, caller, method, params, revision).await {
                Some(Ok(listed)) => {
                    return OutgoingMessage::response(jsonrpc::result(&request.id, &listed));
                }
                Some(Err(error)) => Err(error),
                // Handled by `handle_request`.
                None => Err(missing_session()),
            }
        }
        // Refused by `resolve_method`.
        (_, None) => Err(missing_session()),
    };
    match outcome {
        Ok(result) => session.encode_result(&request.id, result, revision),
        Err(error) => session.encode_rejection(&error.with_id(&request.id)),
    }
}

/// Returns the items that a method lists; `None` if the method lists none.
async fn answer_list(
    session: &Session,
    caller: &Caller,
    method: McpMethod,
    params: Option<&RawValue>,
    revision: Revision,
) -> Option<Result<ListResult, Error>> {
    Some(match method {
        McpMethod::ListTools => {
            paging::list_result::<ToolList>(session, caller, params, revision).await
        }
        McpMethod::ListPrompts => {
            paging::list_result::<PromptList>(session, caller, params, revision).await
        }
        McpMethod::ListResources => {
            paging::list_result::<ResourceList>(session, caller, params, revision).await
        }
        McpMethod::ListTemplates => {
            paging::list_result::<TemplateList>(session, caller, params, revision).await
        }
        McpMethod::ListSkills => {
            paging::list_result::<SkillList>(session, caller, params, revision).await
        }
        McpMethod::GetSkill => get_skill::answer(session, caller, params, revision).await,
        McpMethod::ReadFolder => read_folder::answer(session, caller, params, revision).await,
        _ => return None,
    })
}
