//! Skills: folders of instructions that a client can load by the URI of their `SKILL.md`.

use crate::JsonText;

/// A skill as clients list it, checked when it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// What the skill does and when to use it, as its front matter says.
    pub description: String,
    /// Its URI, its front matter, and each of its files with digest and size, as clients get it in every revision.
    pub entry: JsonText,
}

impl Skill {
    /// The bytes of its entry in a list.
    pub fn size(&self) -> usize {
        self.entry.get().len()
    }
}
