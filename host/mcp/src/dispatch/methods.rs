//! The MCP methods, one file each. Two of the files handle client notifications.

pub(crate) mod call_tool;
pub(crate) mod cancel_task;
pub(crate) mod cancelled;
pub(crate) mod complete;
pub(crate) mod discover;
pub(crate) mod get_prompt;
pub(crate) mod get_skill;
pub(crate) mod get_task;
pub(crate) mod initialize;
pub(crate) mod initialized;
pub(crate) mod list_prompts;
pub(crate) mod list_resources;
pub(crate) mod list_skills;
pub(crate) mod list_tasks;
pub(crate) mod list_templates;
pub(crate) mod list_tools;
pub(crate) mod listen;
pub(crate) mod ping;
pub(crate) mod read_folder;
pub(crate) mod read_policy;
pub(crate) mod read_resource;
pub(crate) mod set_level;
pub(crate) mod subscribe;
pub(crate) mod task_result;
pub(crate) mod update_task;

use std::time::Duration;

use serde_json::{Map, Value};

use crate::host::caller::Caller;
use crate::host::list_source::LoadedPart;
use crate::protocol::jsonrpc::Error;
use crate::response::server_description;
use crate::session::client_session::Session;

/// Time that a client waits for instructions of plugins that are still loading at startup. Most are
/// loaded by then, and a client must not wait for a plugin that is being compiled.
const INSTRUCTIONS_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a method, or a protocol error.
pub(crate) type MethodResult = Result<Map<String, Value>, Error>;

/// Adds the instructions for the client's model.
async fn add_instructions(result: &mut Map<String, Value>, session: &Session, caller: &Caller) {
    if !session.server.loading().is_complete() {
        // Includes what is loaded by then. The lists contain the rest.
        drop(
            tokio::time::timeout(
                INSTRUCTIONS_TIMEOUT,
                session.server.loading().wait_for(LoadedPart::Instructions),
            )
            .await,
        );
    }
    server_description::add_instructions(
        result,
        &session.server.lists().instructions(&caller.rights),
    );
}
