//! The types of `act:tools/tool-provider`. Both versions have the same types, in different
//! interfaces.

use wasmtime::component::{ComponentType, Lift, StreamReader};

/// Keys and their CBOR values.
pub(super) type ActMetadata = Vec<(String, Vec<u8>)>;

/// The parameters of `list-tools`.
pub(super) type ListParams = (ActMetadata,);

/// The results of `list-tools`.
pub(super) type ListResults = (Result<ListToolsResponse, ActError>,);

/// The parameters of `call-tool`: the tool's name, its arguments in CBOR, and metadata.
pub(super) type CallParams = (String, Vec<u8>, ActMetadata);

/// The results of `call-tool`.
pub(super) type CallResults = (ToolResult,);

#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(super) enum LocalizedString {
    #[component(name = "plain")]
    Plain(String),
    /// Pairs of a language tag and a text.
    #[component(name = "localized")]
    Localized(Vec<(String, String)>),
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ActError {
    #[component(name = "kind")]
    pub(super) kind: String,
    #[component(name = "message")]
    pub(super) message: LocalizedString,
    #[component(name = "metadata")]
    pub(super) metadata: ActMetadata,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ToolDefinition {
    #[component(name = "name")]
    pub(super) name: String,
    #[component(name = "description")]
    pub(super) description: LocalizedString,
    #[component(name = "parameters-schema")]
    pub(super) parameters_schema: String,
    #[component(name = "metadata")]
    pub(super) metadata: ActMetadata,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ListToolsResponse {
    #[component(name = "metadata")]
    _metadata: ActMetadata,
    #[component(name = "tools")]
    pub(super) tools: Vec<ToolDefinition>,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ContentPart {
    #[component(name = "data")]
    pub(super) data: Vec<u8>,
    #[component(name = "mime-type")]
    pub(super) mime_type: Option<String>,
    #[component(name = "metadata")]
    pub(super) metadata: ActMetadata,
}

#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(super) enum ToolEvent {
    #[component(name = "content")]
    Content(ContentPart),
    /// The last event.
    #[component(name = "error")]
    Error(ActError),
}

#[derive(ComponentType, Lift)]
#[component(variant)]
pub(super) enum ToolResult {
    #[component(name = "immediate")]
    Immediate(Vec<ToolEvent>),
    #[component(name = "streaming")]
    Streaming(StreamReader<ToolEvent>),
}
