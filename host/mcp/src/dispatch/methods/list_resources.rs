//! `resources/list`: returns a page of the resources that the caller may read.

use serde::Serialize;
use toolbay_model::ListedResource;

use crate::dispatch::paging::PagedList;
use crate::host::interface::{Host, ListPage};
use crate::lists::access_rights::CallerRights;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of resources.
pub(crate) struct ResourceList;

impl PagedList for ResourceList {
    const LIST: ListKind = ListKind::Resources;
    type Entry = ListedResource;

    fn page(
        host: &dyn Host,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        host.resources(after, limit, rights)
    }

    fn name(resource: &ListedResource) -> &str {
        &resource.uri
    }

    fn size(resource: &ListedResource) -> usize {
        resource.size()
    }

    fn shape(resource: &ListedResource, revision: Revision) -> impl Serialize {
        definition_encoding::listed_resource(resource, revision)
    }
}
