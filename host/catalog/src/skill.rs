//! Skills, which are folders of plain files.

pub(crate) mod skill_folder;
pub(crate) mod skill_front_matter;
