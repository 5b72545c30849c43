//! The pinned state of one plugin.

use std::collections::{BTreeMap, BTreeSet};

use toolbay_model::Digest;

/// The state of one version of a plugin, as a lock file pins it. Equal pins mean that nothing that a
/// reviewer approves differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginPin {
    /// SHA-256 of the component; `None` if the plugin has only plain files.
    pub component: Option<Digest>,
    /// SHA-256 of the text of its grant; `None` if it has none.
    pub grant: Option<Digest>,
    /// Purpose of the component, as its file states it. Clients receive it.
    pub about: Option<String>,
    /// The interfaces that the component imports.
    pub imports: BTreeSet<String>,
    /// The effective permissions of the grant, one per line, without values of secrets and
    /// configuration.
    pub permissions: BTreeSet<String>,
    /// The tools, prompts, resources and files that it offers, by kind and name.
    pub items: BTreeMap<(ItemKind, String), ItemPin>,
}

/// The texts of one item, by field, such as `description` or `input_schema`.
pub type ItemPin = BTreeMap<String, String>;

/// Kind of an item that a plugin offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt of the component, or of a file.
    Prompt,
    /// A resource of the component, or a file that is one.
    Resource,
    /// A resource template.
    Template,
    /// A skill.
    Skill,
    /// A file of a skill.
    SkillFile,
}

impl ItemKind {
    /// All kinds, in the order of a lock file.
    pub const ALL: [Self; 6] = [
        Self::Tool,
        Self::Prompt,
        Self::Resource,
        Self::Template,
        Self::Skill,
        Self::SkillFile,
    ];

    /// Returns the name of its table in a lock file.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Skill => "skill",
            Self::SkillFile => "skill_file",
        }
    }

    /// Returns its name in a message.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
            Self::Skill => "skill",
            Self::SkillFile => "file of the skill",
        }
    }
}
