//! The MCP methods that the server supports.

use crate::revision::Revision;

/// A supported method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
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
}

impl Method {
    const ALL: [Self; 7] =
        [Self::Initialize, Self::Ping, Self::SetLevel, Self::Discover, Self::Listen, Self::ListTools, Self::CallTool];

    /// The method with this name; `None` if it is not supported.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The name in requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::SetLevel => "logging/setLevel",
            Self::Discover => "server/discover",
            Self::Listen => "subscriptions/listen",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
        }
    }

    /// Whether `revision` defines the method.
    pub(crate) const fn is_in(self, revision: Revision) -> bool {
        let features = revision.features();
        match self {
            Self::Initialize => features.sessions,
            Self::Ping | Self::SetLevel => features.session_methods,
            Self::Discover => features.discover,
            Self::Listen => features.subscriptions,
            Self::ListTools | Self::CallTool => true,
        }
    }

    /// Whether it is allowed before `initialize`.
    pub(crate) const fn is_before_session(self) -> bool {
        matches!(self, Self::Initialize | Self::Ping)
    }
}
