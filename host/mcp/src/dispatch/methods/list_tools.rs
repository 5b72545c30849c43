//! `tools/list`: returns a page of the tools that the caller may use.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::Tool;

use crate::dispatch::paging::PagedList;
use crate::host::list_source::ListItems;
use crate::host::mcp_server::McpServer;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of tools.
pub(crate) struct ToolList;

impl PagedList for ToolList {
    const LIST: ListKind = ListKind::Tools;
    type Entry = Tool;

    fn items(items: ListItems) -> Option<Vec<Arc<Tool>>> {
        match items {
            ListItems::Tools(items) => Some(items),
            _ => None,
        }
    }

    fn name(tool: &Tool) -> &str {
        &tool.name
    }

    fn size(tool: &Tool) -> usize {
        tool.size()
    }

    fn portable(server: &McpServer, tool: Arc<Tool>) -> Arc<Tool> {
        server.portable_tool(&tool)
    }

    fn to_serializable(tool: &Tool, revision: Revision) -> impl Serialize {
        definition_encoding::tool(tool, revision)
    }
}
