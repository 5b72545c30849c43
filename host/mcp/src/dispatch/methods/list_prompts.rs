//! `prompts/list`: returns a page of the prompts that the caller may use.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::Prompt;

use crate::dispatch::paging::PagedList;
use crate::host::list_source::ListItems;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;
use crate::response::definition_encoding;

/// The list of prompts.
pub(crate) struct PromptList;

impl PagedList for PromptList {
    const LIST: ListKind = ListKind::Prompts;
    type Entry = Prompt;

    fn items(items: ListItems) -> Option<Vec<Arc<Prompt>>> {
        match items {
            ListItems::Prompts(items) => Some(items),
            _ => None,
        }
    }

    fn name(prompt: &Prompt) -> &str {
        &prompt.name
    }

    fn size(prompt: &Prompt) -> usize {
        prompt.size()
    }

    fn to_serializable(prompt: &Prompt, revision: Revision) -> impl Serialize {
        definition_encoding::prompt(prompt, revision)
    }
}
