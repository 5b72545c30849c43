//! The kinds of lists that a client can page through, and their change notifications.

use crate::lists::list_state::CallerView;

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

/// A change notification. Resources, resource templates and skills share one.
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
    pub(crate) const ALL: [Self; 5] = [
        Self::Tools,
        Self::Prompts,
        Self::Resources,
        Self::Templates,
        Self::Skills,
    ];

    /// Returns the name of the result member that contains the items.
    pub(crate) const fn result_member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Skills => "skills",
        }
    }

    /// Returns the digest of the list in a view. If two digests are equal, so are the lists.
    pub(crate) const fn digest(self, view: CallerView) -> u64 {
        self.change().digest(view)
    }

    /// Returns the notification for a change of this list.
    pub(crate) const fn change(self) -> ListChange {
        match self {
            Self::Tools => ListChange::Tools,
            Self::Prompts => ListChange::Prompts,
            Self::Resources | Self::Templates | Self::Skills => ListChange::Resources,
        }
    }
}

impl ListChange {
    /// All notifications, in sending order.
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// Returns the method of the notification.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }

    /// Returns the member of a listen filter that requests the notification.
    pub(crate) const fn filter_member(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }

    /// Returns the digest of the affected lists in a view.
    pub(crate) const fn digest(self, view: CallerView) -> u64 {
        match self {
            Self::Tools => view.tools,
            Self::Prompts => view.prompts,
            Self::Resources => view.resources,
        }
    }
}
