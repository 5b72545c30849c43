//! `skills/list`: a page of the skills of which the caller may read every file.

use serde::Serialize;
use toolbay_model::Skill;

use crate::access::Rights;
use crate::host::{Host, Page};
use crate::list::List;
use crate::paging::Paged;
use crate::revision::Revision;

/// The skills.
pub(crate) struct Skills;

impl Paged for Skills {
    const LIST: List = List::Skills;
    type Entry = Skill;

    fn page(host: &dyn Host, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Skill> {
        host.skills(after, limit, rights)
    }

    fn name(skill: &Skill) -> &str {
        &skill.uri
    }

    fn size(skill: &Skill) -> usize {
        skill.size()
    }

    fn shape(skill: &Skill, _revision: Revision) -> impl Serialize {
        &skill.entry
    }
}
