//! `tools/list`: a page of the tools that the caller may use.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::Tool;

use crate::access::Rights;
use crate::host::{Host, Page};
use crate::list::List;
use crate::paging::Paged;
use crate::revision::Revision;
use crate::shape;

/// The tools.
pub(crate) struct Tools;

impl Paged for Tools {
    const LIST: List = List::Tools;
    type Entry = Tool;

    fn page(host: &dyn Host, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Tool> {
        host.tools(after, limit, rights)
    }

    fn name(tool: &Tool) -> &str {
        &tool.name
    }

    fn size(tool: &Tool) -> usize {
        tool.size()
    }

    fn portable(host: &dyn Host, tool: Arc<Tool>) -> Arc<Tool> {
        host.portable(&tool)
    }

    fn shape(tool: &Tool, revision: Revision) -> impl Serialize {
        shape::tool(tool, revision)
    }
}
