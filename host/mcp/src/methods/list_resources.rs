//! `resources/list`: a page of the resources that the caller may read.

use serde::Serialize;
use toolbay_model::ListedResource;

use crate::access::Rights;
use crate::host::{Host, Page};
use crate::list::List;
use crate::paging::Paged;
use crate::revision::Revision;
use crate::shape;

/// The resources.
pub(crate) struct Resources;

impl Paged for Resources {
    const LIST: List = List::Resources;
    type Entry = ListedResource;

    fn page(host: &dyn Host, after: Option<&str>, limit: usize, rights: &Rights) -> Page<ListedResource> {
        host.resources(after, limit, rights)
    }

    fn name(resource: &ListedResource) -> &str {
        &resource.uri
    }

    fn size(resource: &ListedResource) -> usize {
        resource.size()
    }

    fn shape(resource: &ListedResource, revision: Revision) -> impl Serialize {
        shape::listed_resource(resource, revision)
    }
}
