//! The MCP methods that the server supports.

use crate::protocol::revision::Revision;

/// A supported method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpMethod {
    /// `initialize`.
    Initialize,
    /// `ping`.
    Ping,
    /// `logging/setLevel`.
    SetLevel,
    /// `server/discover`.
    Discover,
    /// `subscriptions/listen`.
    Listen,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
    /// `prompts/list`.
    ListPrompts,
    /// `prompts/get`.
    GetPrompt,
    /// `resources/list`.
    ListResources,
    /// `resources/templates/list`.
    ListTemplates,
    /// `resources/read`.
    ReadResource,
    /// `resources/directory/read`.
    ReadFolder,
    /// `skills/list`.
    ListSkills,
    /// `skills/get`.
    GetSkill,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`.
    Unsubscribe,
    /// `completion/complete`.
    Complete,
    /// `tasks/get`.
    GetTask,
    /// `tasks/cancel`.
    CancelTask,
    /// `tasks/update`.
    UpdateTask,
    /// `tasks/result`.
    TaskResult,
    /// `tasks/list`.
    ListTasks,
}

impl McpMethod {
    /// Every method.
    pub(crate) const ALL: [Self; 23] = [
        Self::Initialize,
        Self::Ping,
        Self::SetLevel,
        Self::Discover,
        Self::Listen,
        Self::ListTools,
        Self::CallTool,
        Self::ListPrompts,
        Self::GetPrompt,
        Self::ListResources,
        Self::ListTemplates,
        Self::ReadResource,
        Self::ReadFolder,
        Self::ListSkills,
        Self::GetSkill,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Complete,
        Self::GetTask,
        Self::CancelTask,
        Self::UpdateTask,
        Self::TaskResult,
        Self::ListTasks,
    ];

    /// Returns the method with this name, or `None` if it is not supported.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns the method's name in requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::SetLevel => "logging/setLevel",
            Self::Discover => "server/discover",
            Self::Listen => "subscriptions/listen",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
            Self::ListResources => "resources/list",
            Self::ListTemplates => "resources/templates/list",
            Self::ReadResource => "resources/read",
            Self::ReadFolder => "resources/directory/read",
            Self::ListSkills => "skills/list",
            Self::GetSkill => "skills/get",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::Complete => "completion/complete",
            Self::GetTask => "tasks/get",
            Self::CancelTask => "tasks/cancel",
            Self::UpdateTask => "tasks/update",
            Self::TaskResult => "tasks/result",
            Self::ListTasks => "tasks/list",
        }
    }

    /// Returns whether `revision` defines the method.
    pub(crate) const fn is_defined_in(self, revision: Revision) -> bool {
        let features = revision.features();
        match self {
            Self::Initialize => features.sessions,
            Self::Ping | Self::SetLevel | Self::Subscribe | Self::Unsubscribe => features.session_methods,
            Self::Discover => features.discover,
            Self::Listen => features.subscriptions,
            Self::GetTask | Self::CancelTask => features.tasks || features.tasks_extension,
            Self::UpdateTask => features.tasks_extension,
            Self::TaskResult | Self::ListTasks => features.tasks,
            Self::ListTools
            | Self::CallTool
            | Self::ListPrompts
            | Self::GetPrompt
            | Self::ListResources
            | Self::ListTemplates
            | Self::ReadResource
            | Self::Complete
            // An extension, declared in every revision: its methods are new names in all of them.
            | Self::ReadFolder
            | Self::ListSkills
            | Self::GetSkill => true,
        }
    }

    /// Returns whether the response depends on all plugins that existed at startup, and waits for
    /// them.
    pub(crate) const fn waits_for_plugins(self) -> bool {
        matches!(
            self,
            Self::ListTools
                | Self::ListPrompts
                | Self::ListResources
                | Self::ListTemplates
                | Self::ReadFolder
                | Self::ListSkills
                | Self::GetSkill
                | Self::Subscribe
        )
    }

    /// Returns whether the method only changes session state.
    pub(crate) const fn changes_session_state(self) -> bool {
        matches!(self, Self::SetLevel | Self::Subscribe | Self::Unsubscribe)
    }

    /// Returns whether the method is allowed before `initialize`.
    pub(crate) const fn is_allowed_before_session(self) -> bool {
        matches!(self, Self::Initialize | Self::Ping)
    }
}
