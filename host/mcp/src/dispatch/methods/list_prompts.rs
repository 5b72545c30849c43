//! `prompts/list`: returns a page of the prompts that the caller may use.

use serde::Serialize;
use toolbay_model::Prompt;

use crate::dispatch::paging::PagedList;
use crate::host::interface::{Host, ListPage};
use crate::lists::access_rights::CallerRights;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of prompts.
pub(crate) struct PromptList;

impl PagedList for PromptList {
    const LIST: ListKind = ListKind::Prompts;
    type Entry = Prompt;

    fn page(
        host: &dyn Host,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Prompt> {
        host.prompts(after, limit, rights)
    }

    fn name(prompt: &Prompt) -> &str {
        &prompt.name
    }

    fn size(prompt: &Prompt) -> usize {
        prompt.size()
    }

    fn shape(prompt: &Prompt, revision: Revision) -> impl Serialize {
        definition_encoding::prompt(prompt, revision)
    }
}
