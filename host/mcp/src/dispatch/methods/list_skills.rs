//! `skills/list`: returns a page of the skills whose files the caller may all read.

use std::sync::Arc;

use serde::Serialize;
use toolbay_model::Skill;

use crate::dispatch::paging::PagedList;
use crate::host::list_source::ListItems;
use crate::lists::list_kind::ListKind;
use crate::protocol::revision::Revision;

/// The list of skills.
pub(crate) struct SkillList;

impl PagedList for SkillList {
    const LIST: ListKind = ListKind::Skills;
    type Entry = Skill;

    fn items(items: ListItems) -> Option<Vec<Arc<Skill>>> {
        match items {
            ListItems::Skills(items) => Some(items),
            _ => None,
        }
    }

    fn name(skill: &Skill) -> &str {
        &skill.uri
    }

    fn size(skill: &Skill) -> usize {
        skill.size()
    }

    fn to_serializable(skill: &Skill, _revision: Revision) -> impl Serialize {
        &skill.entry
    }
}
