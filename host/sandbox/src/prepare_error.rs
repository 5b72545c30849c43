//! Why a plugin file cannot be prepared for calls.

use thiserror::Error;

use crate::versions;

/// Why bytes are not a plugin. The texts are for the author.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PrepareError {
    /// The file ends before it says it does: most likely still being written.
    #[error("the file is incomplete: it ends in the middle of a section")]
    Incomplete,
    /// Something else altogether.
    #[error("not a WebAssembly file: it starts with {0}, not with \"\\0asm\"")]
    NotWasm(String),
    /// A component that does not validate or compile.
    #[error("{0}")]
    Invalid(String),
    /// A valid one that is larger than the server's ceilings.
    #[error("{0}")]
    TooLarge(String),
    /// The compiler met a limit or broke on it.
    #[error("{0}")]
    Compiler(String),
    /// The compiler did not come to an end for a reason that may pass, such as other work on the machine.
    #[error("{0}")]
    Hindered(String),
    /// The compiled code could not be written where it should be.
    #[error("cannot write the compiled code")]
    Unwritten,
    /// It needs something that the world does not have.
    #[error("imports interfaces that the host does not provide: {}", .0.join(", "))]
    UnknownImports(Vec<String>),
    /// It imports something known in a shape or version that is not.
    #[error("its imports do not match the host's: {0}")]
    Link(String),
    /// A component for a version of the contract that this host does not serve: its export, and the version's major and
    /// minor number.
    #[error(
        "exports {0}, but this version of Toolbay supports {served}; use Toolbay {1} or newer",
        served = versions::served()
    )]
    UnknownContract(String, String),
    /// A component whose types are not those of the version of the contract that it exports.
    #[error("exports {0}, but its types differ from those of that version: {1}")]
    ContractTypes(String, String),
    /// A component without anything that a tool could be.
    #[error("exports neither toolbay:plugin/tools nor a function that can be a tool; it exports {0}")]
    NoTools(String),
}
