//! `resources/list`: returns a page of the resources that the caller may read.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::ListedResource;

use crate::dispatch::paging::PagedList;
use crate::host::list_source::ListItems;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of resources.
pub(crate) struct ResourceList;

impl PagedList for ResourceList {
    const LIST: ListKind = ListKind::Resources;
    type Entry = ListedResource;

    fn items(items: ListItems) -> Option<Vec<Arc<ListedResource>>> {
        match items {
            ListItems::Resources(items) => Some(items),
            _ => None,
        }
    }

    fn name(resource: &ListedResource) -> &str {
        &resource.uri
    }

    fn size(resource: &ListedResource) -> usize {
        resource.size()
    }

    fn to_serializable(resource: &ListedResource, revision: Revision) -> impl Serialize {
        definition_encoding::listed_resource(resource, revision)
    }
}
