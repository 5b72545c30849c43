//! `skills/list`: returns a page of the skills whose files the caller may all read.

use serde::Serialize;
use toolbay_model::Skill;

use crate::dispatch::paging::PagedList;
use crate::host::interface::{Host, ListPage};
use crate::lists::access_rights::CallerRights;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;

/// The list of skills.
pub(crate) struct SkillList;

impl PagedList for SkillList {
    const LIST: ListKind = ListKind::Skills;
    type Entry = Skill;

    fn page(
        host: &dyn Host,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Skill> {
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
