//! The interfaces of the contract that a plugin can export.

use std::collections::BTreeSet;

/// Prefix of the names of the contract's exports.
const EXPORT_PREFIX: &str = "toolbay:plugin/";

/// An interface of the contract that a plugin can export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContractInterface {
    /// The plugin offers tools.
    Tools,
    /// The plugin offers prompts.
    Prompts,
    /// The plugin offers resources.
    Resources,
    /// The plugin completes arguments of prompts and of resource templates.
    Completion,
}

impl ContractInterface {
    const ALL: [Self; 4] = [
        Self::Tools,
        Self::Prompts,
        Self::Resources,
        Self::Completion,
    ];

    /// Returns the name of the interface in the contract.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Completion => "completion",
        }
    }

    /// Parses the name of an export, such as `toolbay:plugin/tools@0.2.0`, into the interface and
    /// the text after the `@`.
    pub(crate) fn from_export(name: &str) -> Option<(Self, &str)> {
        let (interface, rest) = name.strip_prefix(EXPORT_PREFIX)?.split_once('@')?;
        Some((
            Self::ALL
                .into_iter()
                .find(|part| part.name() == interface)?,
            rest,
        ))
    }
}

/// Formats the names of interfaces for messages: `toolbay:plugin/tools@0.2.0`,
/// `toolbay:plugin/{prompts, resources}@0.2.0`.
pub(crate) fn export_names(interfaces: &BTreeSet<ContractInterface>, version: &str) -> String {
    let names: Vec<&str> = interfaces
        .iter()
        .map(|interface| interface.name())
        .collect();
    match names.as_slice() {
        [name] => format!("{EXPORT_PREFIX}{name}@{version}"),
        names => format!("{EXPORT_PREFIX}{{{}}}@{version}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_belongs_to_an_interface_and_a_version() {
        assert_eq!(
            ContractInterface::from_export("toolbay:plugin/tools@0.1.0"),
            Some((ContractInterface::Tools, "0.1.0"))
        );
        let function = "toolbay:plugin/completion@0.2.0#complete";
        assert_eq!(
            ContractInterface::from_export(function),
            Some((ContractInterface::Completion, "0.2.0#complete"))
        );
        for none in [
            "toolbay:plugin/toolshed@0.1.0",
            "toolbay:plugin/tools",
            "toolbay:plugin/host@0.2.0",
            "tools@0.1.0",
        ] {
            assert_eq!(ContractInterface::from_export(none), None, "{none}");
        }
    }

    #[test]
    fn several_interfaces_are_named_together() {
        assert_eq!(
            export_names(&BTreeSet::from([ContractInterface::Tools]), "0.2.0"),
            "toolbay:plugin/tools@0.2.0"
        );
        let both = BTreeSet::from([ContractInterface::Resources, ContractInterface::Prompts]);
        assert_eq!(
            export_names(&both, "0.2.0"),
            "toolbay:plugin/{prompts, resources}@0.2.0"
        );
    }
}
