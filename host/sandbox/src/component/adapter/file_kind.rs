//! Kinds of plugin files.

use std::fmt;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginFileKind {
    /// A component.
    Component,
    /// A core module that contains the types of its component.
    Module,
    /// A core module that exports the functions of the contract.
    ContractModule,
    /// A core module whose functions have their types in the `.wit` file next to it.
    TypedModule,
    /// A core module with a `_start`: a WASI 0.1 command.
    CommandModule,
}

impl fmt::Display for PluginFileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Component => "a component",
            Self::Module => "a core module with an embedded component type",
            Self::ContractModule => "a core module that exports the functions of toolbay:plugin",
            Self::TypedModule => "a core module with its types in the .wit file next to it",
            Self::CommandModule => "a core module that exports `_start` (a WASI 0.1 command)",
        })
    }
}
