//! The contract between host and plugin: one module for each version that is served.
//!
//! Every released version is served for ever. Its module converts its types to those of the host ([`Returned`],
//! [`ToolDefinition`]), and nothing else depends on it. A plugin for a version that is not served, or whose types
//! differ from those of its version, is refused when it is loaded, not when it is first called.

mod interface;
mod v0_1;
mod v0_2;

use std::fmt;

use semver::Version;
use toolbay_model::ToolDefinition;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Engine, Store};

use self::interface::Interface;
use crate::block::{Refusal, Returned};
use crate::prepare_error::PrepareError;
use crate::state::State;
use crate::versions::SERVED;

/// The export that makes a component a plugin, without its version.
const TOOLS: &str = "toolbay:plugin/tools";

/// A component that implements a version of the contract.
pub(crate) enum Contract {
    /// 0.1.0.
    V0_1(v0_1::Adapter),
    /// 0.2.0.
    V0_2(v0_2::Adapter),
}

/// A version of the contract that a component exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exported {
    /// The name of the export.
    name: String,
    version: Version,
}

impl Exported {
    /// Finds the contract among the names that a component exports.
    pub(crate) fn find<'a>(mut exports: impl Iterator<Item = &'a str>) -> Option<Self> {
        exports.find_map(|name| {
            let version = name.strip_prefix(TOOLS)?.strip_prefix('@')?;
            Some(Self { name: name.to_owned(), version: Version::parse(version).ok()? })
        })
    }
}

impl Contract {
    /// Checks the types of the exports against those of the version that they name. `pre` is the same component after
    /// linking.
    pub(crate) fn new(
        engine: &Engine,
        component: &Component,
        pre: InstancePre<State>,
        exported: &Exported,
    ) -> Result<Self, PrepareError> {
        let interface = Interface::of(engine, component, &exported.name)
            .ok_or_else(|| PrepareError::ContractTypes(exported.name.clone(), "it is not an interface".to_owned()))?;
        let fits = |error: wasmtime::Error| {
            PrepareError::ContractTypes(exported.name.clone(), toolbay_model::text::joined(&format!("{error:#}")))
        };
        match (exported.version.major, exported.version.minor) {
            (0, 1) => v0_1::Adapter::new(&interface, pre).map(Self::V0_1).map_err(fits),
            (0, 2) => v0_2::Adapter::new(&interface, pre).map(Self::V0_2).map_err(fits),
            (major, minor) => Err(PrepareError::UnknownContract(exported.name.clone(), format!("{major}.{minor}"))),
        }
    }

    /// The plugin's tools, as it defines them.
    pub(crate) async fn list_tools(&self, store: &mut Store<State>) -> wasmtime::Result<Vec<ToolDefinition>> {
        match self {
            Self::V0_1(adapter) => adapter.list_tools(store).await,
            Self::V0_2(adapter) => adapter.list_tools(store).await,
        }
    }

    /// Calls a tool; `arguments` is a JSON object as text.
    pub(crate) async fn call_tool(
        &self,
        store: &mut Store<State>,
        tool: &str,
        arguments: &str,
    ) -> wasmtime::Result<Result<Returned, Refusal>> {
        match self {
            Self::V0_1(adapter) => adapter.call_tool(store, tool, arguments).await,
            Self::V0_2(adapter) => adapter.call_tool(store, tool, arguments).await,
        }
    }
}

/// The version for messages.
impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(oldest, _), (newest, _)] = SERVED;
        f.write_str(match self {
            Self::V0_1(_) => oldest,
            Self::V0_2(_) => newest,
        })
    }
}

/// Links the host's side of every version.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    v0_1::add_to_linker(linker)?;
    v0_2::add_to_linker(linker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_found_among_exports() {
        let find = |names: &[&str]| Exported::find(names.iter().copied()).map(|exported| exported.version.to_string());
        assert_eq!(find(&["init", "toolbay:plugin/tools@0.1.0"]).as_deref(), Some("0.1.0"));
        assert_eq!(find(&["toolbay:plugin/toolshed@0.1.0", "toolbay:plugin/tools"]), None);
    }
}
