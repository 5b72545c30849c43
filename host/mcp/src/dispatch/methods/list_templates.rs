//! `resources/templates/list`: returns a page of the resource templates that the caller may use.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::ListedResource;

use crate::dispatch::paging::PagedList;
use crate::host::list_source::ListItems;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of resource templates.
pub(crate) struct TemplateList;

impl PagedList for TemplateList {
    const LIST: ListKind = ListKind::Templates;
    type Entry = ListedResource;

    fn items(items: ListItems) -> Option<Vec<Arc<ListedResource>>> {
        match items {
            ListItems::Resources(items) => Some(items),
            _ => None,
        }
    }

    fn name(template: &ListedResource) -> &str {
        &template.uri
    }

    fn size(template: &ListedResource) -> usize {
        template.size()
    }

    fn to_serializable(template: &ListedResource, revision: Revision) -> impl Serialize {
        definition_encoding::template(template, revision)
    }
}
