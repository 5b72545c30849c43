//! `resources/templates/list`: a page of the resource templates that the caller may use.

use serde::Serialize;
use toolbay_model::ListedResource;

use crate::access::Rights;
use crate::host::{Host, Page};
use crate::list::List;
use crate::paging::Paged;
use crate::revision::Revision;
use crate::shape;

/// The resource templates.
pub(crate) struct Templates;

impl Paged for Templates {
    const LIST: List = List::Templates;
    type Entry = ListedResource;

    fn page(host: &dyn Host, after: Option<&str>, limit: usize, rights: &Rights) -> Page<ListedResource> {
        host.templates(after, limit, rights)
    }

    fn name(template: &ListedResource) -> &str {
        &template.uri
    }

    fn size(template: &ListedResource) -> usize {
        template.size()
    }

    fn shape(template: &ListedResource, revision: Revision) -> impl Serialize {
        shape::template(template, revision)
    }
}
