//! Components in the compile cache, and their code, which the caller opens when it needs it. Code
//! that cannot be used any more is lost: the caller compiles the file again and replaces it.

use toolbay_model::{ComponentDescription, Digest, GuestServerProtocol};

use crate::cache::{CachedComponent, StoredCode};
use crate::component::plugin_summary::PluginSummary;
use crate::prepare::component_summary::ComponentSummary;
use crate::prepare::prepared_component::PreparedComponent;

/// A component in the compile cache, with its description and the summary of its file.
pub struct CachedPlugin {
    /// Properties that are available without the code.
    pub summary: ComponentSummary,
    /// The code.
    pub code: CachedCode,
    /// The items that the component offers.
    pub description: ComponentDescription,
    /// Information about the component's file.
    pub about: PluginSummary,
}

/// The code of a component in the compile cache.
pub enum CachedCode {
    /// The code is opened on first use.
    Unopened(UnopenedCode),
    /// The code is open already: it was stored with a different pool size.
    Open(Box<PreparedComponent>),
}

/// Stored code that is not open yet.
#[derive(Clone)]
pub struct UnopenedCode {
    pub(crate) digest: Digest,
    pub(crate) code: StoredCode,
    /// The MCP endpoint of a component that is an MCP server.
    pub(crate) mcp_endpoint: Option<GuestServerProtocol>,
    /// The number of nested instances with functions, if the component has async functions.
    pub(crate) tasked: Option<u32>,
}

/// Stored code after an attempt to open it.
pub enum OpenedCode {
    /// The code is open.
    Open(Box<PreparedComponent>),
    /// The code cannot be used any more. The component must be compiled again.
    Lost(LostCode),
}

/// Stored code that cannot be used any more.
pub struct LostCode {
    pub(crate) digest: Digest,
    pub(crate) manner: Option<GuestServerProtocol>,
    /// The notes for the new code, if the compile cache had the component.
    pub(crate) known: Option<Box<CachedComponent>>,
}

impl LostCode {
    /// Returns the digest of the component.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
