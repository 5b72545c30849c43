//! Finds the method of a request, and the reader of its parameters.

use crate::dispatch::methods::{call_tool, complete, get_prompt, read_resource};
use crate::plugin_request::entry_params::ParamsReader;
use crate::protocol::jsonrpc::{Error, METHOD_NOT_FOUND, Request, truncate_quote};
use crate::protocol::message_context::{RequestContext, missing_session};
use crate::protocol::method::McpMethod;
use crate::session::client_session::{Session, SessionChannel};

/// Returns the method of a request, if it is available in this context.
pub(super) fn resolve_method(
    session: &Session,
    request: &Request<'_>,
    context: Option<&RequestContext>,
) -> Result<McpMethod, Error> {
    let unknown = || {
        Error::new(
            METHOD_NOT_FOUND,
            format!("Method not found: {}", truncate_quote(&request.method)),
        )
    };
    let method = McpMethod::parse(&request.method).ok_or_else(unknown)?;
    match context {
        Some(context) if method.is_defined_in(context.revision) => {
            if session.channel == SessionChannel::OneRequest && method.changes_session_state() {
                let reason = format!(
                    "{} needs a session, and this server has none (http.sessions)",
                    method.name()
                );
                return Err(Error::new(METHOD_NOT_FOUND, reason));
            }
            Ok(method)
        }
        Some(_) => Err(unknown()),
        None if method.is_allowed_before_session() => Ok(method),
        None => Err(missing_session()),
    }
}

/// Returns the reader for the parameters of a method that enters a plugin; `None` if the method
/// enters none.
pub(super) fn params_reader(method: McpMethod) -> Option<ParamsReader> {
    match method {
        McpMethod::CallTool => Some(call_tool::read),
        McpMethod::GetPrompt => Some(get_prompt::read),
        McpMethod::ReadResource => Some(read_resource::read),
        McpMethod::Complete => Some(complete::read),
        _ => None,
    }
}
