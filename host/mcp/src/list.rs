//! The lists that a client can page through.

use crate::view::CallerView;

/// A list that a client can page through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `skills/list`.
    Skills,
}

/// What a client is notified of when lists change. Resources, their templates and skills share a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListChange {
    /// `notifications/tools/list_changed`.
    Tools,
    /// `notifications/prompts/list_changed`.
    Prompts,
    /// `notifications/resources/list_changed`.
    Resources,
}

impl ListKind {
    /// Every list.
    pub(crate) const ALL: [Self; 5] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates, Self::Skills];

    /// The member of the result that contains the items.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Skills => "skills",
        }
    }

    /// The digest of the list in a view: if two are equal, so are the lists.
    pub(crate) const fn digest(self, view: CallerView) -> u64 {
        self.news().digest(view)
    }

    /// What a client is notified of when the list changes.
    pub(crate) const fn news(self) -> ListChange {
        match self {
            Self::Tools => ListChange::Tools,
            Self::Prompts => ListChange::Prompts,
            Self::Resources | Self::Templates | Self::Skills => ListChange::Resources,
        }
    }
}

impl ListChange {
    /// All that there is, in the order in which it is told.
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The method of the notification.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }

    /// The member of a listen filter that asks for it.
    pub(crate) const fn filter(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }

    /// The digest in a view of what it is about.
    pub(crate) const fn digest(self, view: CallerView) -> u64 {
        match self {
            Self::Tools => view.tools,
            Self::Prompts => view.prompts,
            Self::Resources => view.resources,
        }
    }
}
