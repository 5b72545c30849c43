//! What a guest is asked.

use std::collections::BTreeMap;

use toolbay_model::{CompletionRequest, ParamHeader};

/// What a guest is asked in one message.
#[derive(Clone, Copy, Debug)]
pub enum GuestMethod<'a> {
    /// Which revisions it speaks, and what it offers (`server/discover`).
    Discover,
    /// The same in the revisions with sessions (`initialize`).
    Initialize,
    /// Nothing: it is told that the session has begun (`notifications/initialized`).
    Initialized,
    /// A page of a list, the first one or the one at this cursor.
    List(GuestList, Option<&'a str>),
    /// The result of a tool.
    Tool {
        /// The tool's name.
        name: &'a str,
        /// The arguments: a JSON object as text.
        arguments: &'a str,
        /// The arguments that headers repeat.
        headers: &'a [ParamHeader],
    },
    /// A prompt with its arguments filled in.
    Prompt {
        /// The prompt's name.
        name: &'a str,
        /// The arguments by name.
        arguments: &'a BTreeMap<String, String>,
    },
    /// The content of a resource.
    Resource {
        /// Its URI.
        uri: &'a str,
    },
    /// Values for an argument.
    Completion(&'a CompletionRequest),
}

/// What a guest lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestList {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// Its resource templates.
    Templates,
}

impl GuestList {
    /// Every list.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that asks for it.
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
    /// The method.
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

    /// What the header `Mcp-Name` repeats.
    pub(crate) const fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => Some(name),
            Self::Resource { uri } => Some(uri),
            _ => None,
        }
    }

    /// Whether it may take long, and may ask its caller something.
    pub(crate) const fn is_call(&self) -> bool {
        matches!(self, Self::Tool { .. } | Self::Prompt { .. } | Self::Resource { .. } | Self::Completion(_))
    }
}
