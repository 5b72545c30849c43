//! The server's description of itself: its name and version, capabilities and instructions, and the
//! members that every result of a revision has.

use serde_json::{Map, Value, json};

use crate::host::interface::ServerInfo;
use crate::protocol::capabilities::TASKS_EXTENSION;
use crate::protocol::revision::Revision;
use crate::response::json_members::insert_some;

/// Key of the server's name and version in the `_meta` of results without a session.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The identifier of MCP Apps, the extension for views of results.
const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Key of the capability to serve skills.
const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Adds the members that every result of the revision has.
pub(crate) fn add_common_members(
    result: &mut Map<String, Value>,
    server: &ServerInfo,
    revision: Revision,
) {
    if !revision.features().result_type {
        return;
    }
    result
        .entry("resultType")
        .or_insert_with(|| "complete".into());
    if let Some(meta) = result
        .entry("_meta")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        // Some results already contain the full server info.
        meta.entry(SERVER_INFO_KEY)
            .or_insert_with(|| server_info(server, revision).into());
    }
}

/// Returns the server's name, version and title, which every result of 2026-07-28 contains. Icons
/// are left out because they would make every result longer.
fn server_info(server: &ServerInfo, revision: Revision) -> Map<String, Value> {
    let mut info = Map::new();
    info.insert("name".into(), "toolbay".into());
    info.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    if revision.features().titles {
        info.insert(
            "title".into(),
            server.title.as_deref().unwrap_or("Toolbay").into(),
        );
    }
    info
}

/// Returns the full description of the server.
pub(crate) fn full_server_info(server: &ServerInfo, revision: Revision) -> Value {
    let mut info = server_info(server, revision);
    if revision.features().icons {
        insert_some(&mut info, "description", server.description.as_deref());
        insert_some(&mut info, "websiteUrl", server.website_url.as_deref());
        insert_some(
            &mut info,
            "icons",
            Some(json!(server.icons)).filter(|_| !server.icons.is_empty()),
        );
    }
    info.into()
}

/// Adds the full description of the server to a result without a session.
pub(crate) fn add_server_info(
    result: &mut Map<String, Value>,
    server: &ServerInfo,
    revision: Revision,
) {
    result.insert(
        "_meta".into(),
        json!({SERVER_INFO_KEY: full_server_info(server, revision)}),
    );
}

/// Returns the server's capabilities. They never change, because a plugin with prompts, resources
/// or a skill can be added at any time. `lists_tasks` states whether the caller can list its tasks.
pub(crate) fn capabilities(revision: Revision, lists_tasks: bool) -> Value {
    let features = revision.features();
    let mut capabilities = Map::new();
    if features.completions {
        capabilities.insert("completions".into(), json!({}));
    }
    // Clients of every revision ignore extensions that they do not support.
    let mut extensions = Map::from_iter([
        (SKILLS_EXTENSION.to_owned(), json!({"directoryRead": true})),
        (APPS_EXTENSION.to_owned(), json!({})),
    ]);
    if features.tasks_extension {
        extensions.insert(TASKS_EXTENSION.into(), json!({}));
    }
    capabilities.insert("extensions".into(), extensions.into());
    capabilities.insert("logging".into(), json!({}));
    capabilities.insert("prompts".into(), json!({"listChanged": true}));
    capabilities.insert(
        "resources".into(),
        json!({"subscribe": true, "listChanged": true}),
    );
    if features.tasks {
        let mut tasks = Map::from_iter([("cancel".to_owned(), json!({}))]);
        if lists_tasks {
            tasks.insert("list".into(), json!({}));
        }
        tasks.insert("requests".into(), json!({"tools": {"call": {}}}));
        capabilities.insert("tasks".into(), tasks.into());
    }
    capabilities.insert("tools".into(), json!({"listChanged": true}));
    capabilities.into()
}

/// Removes the capabilities that require a session: notifications without a request, and state that
/// is stored for the next request.
pub(crate) fn remove_session_capabilities(capabilities: &mut Value) {
    if let Some(capabilities) = capabilities.as_object_mut() {
        capabilities.remove("logging");
        for list in ["prompts", "resources", "tools"] {
            capabilities.insert(list.into(), json!({}));
        }
    }
}

/// Adds the operator's instructions, if there are any.
pub(crate) fn add_instructions(result: &mut Map<String, Value>, instructions: &str) {
    insert_some(
        result,
        "instructions",
        Some(instructions).filter(|text| !text.is_empty()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_a_session_names_the_server() {
        let completed = |revision| {
            let mut result = Map::from_iter([("_meta".to_owned(), json!({"a": 1}))]);
            add_common_members(&mut result, &ServerInfo::default(), revision);
            Value::Object(result)
        };
        assert_eq!(
            completed(Revision::NEWEST_SESSION),
            json!({"_meta": {"a": 1}})
        );
        let server =
            json!({"name": "toolbay", "version": env!("CARGO_PKG_VERSION"), "title": "Toolbay"});
        let expected =
            json!({"_meta": {"a": 1, SERVER_INFO_KEY: server}, "resultType": "complete"});
        assert_eq!(completed(Revision::NEWEST), expected);
    }
}
