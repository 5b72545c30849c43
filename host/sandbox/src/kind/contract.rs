//! The contract between host and plugin, with one module for each supported version.
//!
//! Every released version remains supported. Its module converts its types to those of the host
//! ([`GuestReply`], [`ComponentDescription`]), and nothing else depends on it. A plugin for an
//! unsupported version, or whose types differ from those of its version, is refused when it is
//! loaded, not when it is first called.

mod interface;
#[cfg(test)]
mod tests;
mod v0_1;
mod v0_2;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use semver::Version;
use toolbay_model::ComponentDescription;
use wasmtime::component::types::{self, ComponentItem};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Engine, Store};

use self::interface::{ExportedInterface, ExportedInterfaces};
use crate::component::contract_interface::{ContractInterface, export_names};
use crate::component::contract_versions::SUPPORTED_VERSIONS;
use crate::component::prepare_error::PrepareError;
use crate::context::plugin_request::PluginRequest;
use crate::reply::guest_reply::{GuestFailure, GuestReply};
use crate::store::state::StoreState;

/// The interface of the contract that plugins import, without its version.
const HOST_PREFIX: &str = "toolbay:plugin/host@";

/// A component that implements a version of the contract.
pub(crate) struct ContractComponent {
    adapter: ContractAdapter,
    /// The interfaces that it exports.
    interfaces: BTreeSet<ContractInterface>,
}

/// The converter for the types of one version.
enum ContractAdapter {
    /// 0.1.0.
    V0_1(v0_1::Adapter),
    /// 0.2.0.
    V0_2(v0_2::Adapter),
}

/// The contract interfaces that a component exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExportedContract {
    version: Version,
    /// The interfaces, with the names of their exports.
    names: BTreeMap<ContractInterface, String>,
}

impl ExportedContract {
    /// Finds the contract among the names that a component exports. Returns `None` if it exports no
    /// interface of the contract.
    ///
    /// # Errors
    ///
    /// The component exports interfaces of several versions, or only the completion interface,
    /// which completes the arguments of other interfaces.
    pub(crate) fn find<'a>(
        exports: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Self>, PrepareError> {
        let mut contract: Option<Self> = None;
        for name in exports {
            let Some((interface, version)) = ContractInterface::from_export(name) else {
                continue;
            };
            let Ok(version) = Version::parse(version) else {
                continue;
            };
            let exported = contract.get_or_insert_with(|| Self {
                version: version.clone(),
                names: BTreeMap::new(),
            });
            if exported.version != version {
                let first = exported.names.values().next().cloned().unwrap_or_default();
                return Err(PrepareError::SeveralVersions(first, name.to_owned()));
            }
            exported.names.insert(interface, name.to_owned());
        }
        match contract {
            Some(exported)
                if exported
                    .names
                    .keys()
                    .all(|interface| *interface == ContractInterface::Completion) =>
            {
                Err(PrepareError::NothingToComplete(exported.name().to_owned()))
            }
            other => Ok(other),
        }
    }

    /// Returns the name of the first export.
    fn name(&self) -> &str {
        self.names.values().next().map_or("", String::as_str)
    }
}

impl ContractComponent {
    /// Checks the types of the exports against those of the version that they name. `pre` is the
    /// same component after linking.
    pub(crate) fn new(
        engine: &Engine,
        component: &Component,
        pre: InstancePre<StoreState>,
        exported: &ExportedContract,
    ) -> Result<Self, PrepareError> {
        let ExportedContract { version, names } = exported;
        let adapter = match (version.major, version.minor) {
            (0, 1 | 2) => {
                let mut interfaces = ExportedInterfaces::new();
                for (interface, name) in names {
                    interfaces.insert(
                        *interface,
                        ExportedInterface::find(engine, component, name)?,
                    );
                }
                if version.minor == 1 {
                    ContractAdapter::V0_1(v0_1::Adapter::new(&interfaces, pre)?)
                } else {
                    ContractAdapter::V0_2(v0_2::Adapter::new(&interfaces, pre)?)
                }
            }
            (major, minor) => {
                return Err(PrepareError::UnknownContract(
                    exported.name().to_owned(),
                    format!("{major}.{minor}"),
                ));
            }
        };
        Ok(Self {
            adapter,
            interfaces: names.keys().copied().collect(),
        })
    }

    /// Lists the items that the plugin offers.
    pub(crate) async fn list(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<ComponentDescription> {
        match &self.adapter {
            ContractAdapter::V0_1(adapter) => adapter.list(store).await,
            ContractAdapter::V0_2(adapter) => adapter.list(store).await,
        }
    }

    /// Sends a request to the plugin.
    pub(crate) async fn call(
        &self,
        store: &mut Store<StoreState>,
        plugin_request: PluginRequest<'_>,
    ) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
        match &self.adapter {
            ContractAdapter::V0_1(adapter) => adapter.call(store, plugin_request).await,
            ContractAdapter::V0_2(adapter) => adapter.call(store, plugin_request).await,
        }
    }
}

/// Formats the exported interfaces for messages.
impl fmt::Display for ContractComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(oldest, _), (newest, _)] = SUPPORTED_VERSIONS;
        let version = match self.adapter {
            ContractAdapter::V0_1(_) => oldest,
            ContractAdapter::V0_2(_) => newest,
        };
        f.write_str(&export_names(&self.interfaces, version))
    }
}

/// Returns whether a component imports the function with which a plugin asks its caller questions.
pub(crate) fn imports_ask(engine: &Engine, component: &types::Component) -> bool {
    component.imports(engine).any(|(name, import)| {
        let is_host = name.starts_with(HOST_PREFIX);
        match import.ty {
            ComponentItem::ComponentInstance(host) if is_host => {
                host.get_export(engine, "ask").is_some()
            }
            _ => false,
        }
    })
}

/// Adds the host functions of every version to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    v0_1::add_to_linker(linker)?;
    v0_2::add_to_linker(linker)
}
