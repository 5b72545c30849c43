//! Methods that the host calls on a guest.

use std::collections::BTreeMap;

use toolbay_model::{CompletionRequest, ParamHeader};

/// Method that the host calls on a guest, with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum GuestMethod<'a> {
    /// Queries supported revisions and features (`server/discover`).
    Discover,
    /// Like [`Self::Discover`], for the revisions with sessions (`initialize`).
    Initialize,
    /// Notifies the guest that the session has started (`notifications/initialized`).
    Initialized,
    /// Queries a page of a list: the first one, or the one at this cursor.
    List(GuestList, Option<&'a str>),
    /// Calls a tool.
    Tool {
        /// Name of the tool.
        name: &'a str,
        /// Arguments, a JSON object as text.
        arguments: &'a str,
        /// Arguments that are repeated in headers.
        headers: &'a [ParamHeader],
    },
    /// Gets a prompt with its arguments filled in.
    Prompt {
        /// Name of the prompt.
        name: &'a str,
        /// Arguments by name.
        arguments: &'a BTreeMap<String, String>,
    },
    /// Reads a resource.
    Resource {
        /// URI of the resource.
        uri: &'a str,
    },
    /// Completes an argument.
    Completion(&'a CompletionRequest),
}

/// Kind of list that a guest offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestList {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
}

impl GuestList {
    /// All lists.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Returns the method that queries the list.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }
}

impl GuestMethod<'_> {
    /// Returns the name of the method.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Initialized => "notifications/initialized",
            Self::List(list, _) => list.method(),
            Self::Tool { .. } => "tools/call",
            Self::Prompt { .. } => "prompts/get",
            Self::Resource { .. } => "resources/read",
            Self::Completion(_) => "completion/complete",
        }
    }

    /// Returns the value of the header `Mcp-Name`.
    pub(crate) const fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => Some(name),
            Self::Resource { uri } => Some(uri),
            _ => None,
        }
    }

    /// Returns whether the request enters the guest's own code: it may take long and may ask its
    /// caller questions.
    pub(crate) const fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Tool { .. } | Self::Prompt { .. } | Self::Resource { .. } | Self::Completion(_)
        )
    }
}
