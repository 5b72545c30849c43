//! `prompts/list`: a page of the prompts that the caller may use.

use serde::Serialize;
use toolbay_model::Prompt;

use crate::access::Rights;
use crate::host::{Host, Page};
use crate::list::List;
use crate::paging::Paged;
use crate::revision::Revision;
use crate::shape;

/// The prompts.
pub(crate) struct Prompts;

impl Paged for Prompts {
    const LIST: List = List::Prompts;
    type Entry = Prompt;

    fn page(host: &dyn Host, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Prompt> {
        host.prompts(after, limit, rights)
    }

    fn name(prompt: &Prompt) -> &str {
        &prompt.name
    }

    fn size(prompt: &Prompt) -> usize {
        prompt.size()
    }

    fn shape(prompt: &Prompt, revision: Revision) -> impl Serialize {
        shape::prompt(prompt, revision)
    }
}
