//! Errors of the preparation of a plugin file.

use thiserror::Error;

use crate::component::contract_versions;

/// The reason why a file cannot be a plugin. The texts address the plugin's author.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PrepareError {
    /// The file ends in the middle of a section. It is probably still being written.
    #[error("the file is incomplete: it ends in the middle of a section")]
    Incomplete,
    /// The file has no bytes. It is probably still being written.
    #[error("the file is empty")]
    Empty,
    /// The file is of another known kind. The text names the kind and a remedy.
    #[error("not a WebAssembly file, but {0}")]
    OtherFile(&'static str),
    /// The file is not WebAssembly. The text is the start of the file.
    #[error("not a WebAssembly file: it starts with {0}, not with \"\\0asm\"")]
    NotWasm(String),
    /// The component does not validate or does not compile.
    #[error("{0}")]
    Invalid(String),
    /// The component is valid but exceeds a ceiling of the server.
    #[error("{0}")]
    TooLarge(String),
    /// The compiler reached its limit of memory or CPU time.
    #[error("{0}")]
    CompilerLimit(String),
    /// The compiler crashed, or could not start.
    #[error("{0}")]
    Crashed(String),
    /// The compiler reached its limit of wall-clock time. It will be retried.
    #[error("{0}")]
    TimedOut(String),
    /// Compilation failed for a transient reason. It will be retried.
    #[error("{0}")]
    Transient(String),
    /// The compiled code could not be written.
    #[error(
        "cannot write the compiled code: the disk is full, or files are limited in size (ulimit -f)"
    )]
    WriteFailed,
    /// The component imports interfaces that the host does not provide. The texts are their names.
    #[error("imports interfaces that the host does not provide: {}", .0.join(", "))]
    UnknownImports(Vec<String>),
    /// The component imports an interface that the host provides, but with other types or in
    /// another version.
    #[error("its imports do not match the host's: {0}")]
    Link(String),
    /// The component was built for a version of the contract that this host does not support. The
    /// texts are its export, and the major and minor number of the version.
    #[error(
        "exports {0}, but this version of Toolbay supports {served}; use Toolbay {1} or newer",
        served = contract_versions::supported_versions_text()
    )]
    UnknownContract(String, String),
    /// The component's types differ from those of the version of the contract that it exports.
    #[error("exports {0}, but its types differ from those of that version: {1}")]
    ContractTypes(String, String),
    /// The component exports interfaces of two versions of the contract. The texts are two of their
    /// names.
    #[error(
        "exports {0} and {1}: all of its interfaces must be of the same version of the contract; build it against one"
    )]
    SeveralVersions(String, String),
    /// The component completes arguments, but offers nothing that has arguments. The text is the
    /// name of the export.
    #[error(
        "exports {0}, but nothing that has arguments to complete; export prompts or resources, too"
    )]
    NothingToComplete(String),
    /// The component offers tools through an unsupported interface of another host. The text is the
    /// name of its export.
    #[error(
        "exports {0}: its tools are behind an interface of ACT that Toolbay does not call; it calls \
         act:tools/tool-provider 0.1 and 0.2. Build the component for one of these, export the functions themselves, or \
         use an SDK of toolbay:plugin"
    )]
    UnsupportedToolInterface(String),
    /// The component exports nothing that a plugin can offer.
    #[error(
        "exports no tools, prompts or resources of toolbay:plugin, and no function that can be a tool; it exports {0}"
    )]
    NothingOffered(String),
}

impl PrepareError {
    /// Returns whether the refusal is worth caching: the same program with the same settings will
    /// refuse the file again, and only a compilation shows that.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Invalid(_)
            | Self::TooLarge(_)
            | Self::UnknownImports(_)
            | Self::Link(_)
            | Self::UnknownContract(..)
            | Self::ContractTypes(..)
            | Self::SeveralVersions(..)
            | Self::NothingToComplete(_)
            | Self::UnsupportedToolInterface(_)
            | Self::NothingOffered(_) => true,
            Self::Incomplete
            | Self::Empty
            | Self::NotWasm(_)
            | Self::OtherFile(_)
            | Self::CompilerLimit(_)
            | Self::Crashed(_)
            | Self::TimedOut(_)
            | Self::Transient(_)
            | Self::WriteFailed => false,
        }
    }

    /// Returns whether compiling the file reached a limit, which it might not reach at another
    /// time.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::CompilerLimit(_) | Self::TimedOut(_))
    }
}
