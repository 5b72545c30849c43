//! `tools/list`: returns a page of the tools that the caller may use.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::Tool;

use crate::dispatch::paging::PagedList;
use crate::host::interface::{Host, ListPage};
use crate::lists::access_rights::CallerRights;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of tools.
pub(crate) struct ToolList;

impl PagedList for ToolList {
    const LIST: ListKind = ListKind::Tools;
    type Entry = Tool;

    fn page(
        host: &dyn Host,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Tool> {
        host.tools(after, limit, rights)
    }

    fn name(tool: &Tool) -> &str {
        &tool.name
    }

    fn size(tool: &Tool) -> usize {
        tool.size()
    }

    fn portable(host: &dyn Host, tool: Arc<Tool>) -> Arc<Tool> {
        host.portable_tool(&tool)
    }

    fn shape(tool: &Tool, revision: Revision) -> impl Serialize {
        definition_encoding::tool(tool, revision)
    }
}
