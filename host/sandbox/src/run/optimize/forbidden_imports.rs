//! Imports that the initialization of a plugin must not use.

use std::collections::BTreeSet;

use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use super::init_failure::InitFailure;
use crate::store::state::StoreState;

/// A capability that the initialization may use only if it is allowed, because the results become
/// part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InitAllowance {
    /// Environment variables, arguments and `[config]`. They are empty.
    Environment,
    /// The directories of mounts. There are none.
    Folders,
    /// Random numbers.
    Random,
    /// Clocks.
    Clocks,
}

/// An import that the initialization must not use.
struct ForbiddenImport {
    /// The interface, without its version.
    interface: &'static str,
    /// The functions, or all functions if it is empty. Only for interfaces with a single version in
    /// the linker.
    functions: &'static [&'static str],
    /// The allowance that permits it.
    allowance: Option<InitAllowance>,
    /// The description of its use, for messages.
    does: &'static str,
}

const FORBIDDEN_IMPORTS: [ForbiddenImport; 14] = {
    use InitAllowance::{Clocks, Environment, Folders, Random};
    const fn all(
        interface: &'static str,
        allowance: Option<InitAllowance>,
        does: &'static str,
    ) -> ForbiddenImport {
        ForbiddenImport {
            interface,
            functions: &[],
            allowance,
            does,
        }
    }
    [
        all(
            "wasi:cli/environment",
            Some(Environment),
            "reads environment variables or arguments",
        ),
        all("wasi:config/store", Some(Environment), "reads [config]"),
        ForbiddenImport {
            interface: "toolbay:plugin/host",
            functions: &["config", "config-all"],
            allowance: Some(Environment),
            does: "reads [config]",
        },
        all(
            "wasi:filesystem/preopens",
            Some(Folders),
            "looks for folders",
        ),
        all("wasi:random/random", Some(Random), "draws random numbers"),
        all("wasi:random/insecure", Some(Random), "draws random numbers"),
        all(
            "wasi:random/insecure-seed",
            Some(Random),
            "draws a random seed",
        ),
        all("wasi:clocks/wall-clock", Some(Clocks), "reads the clock"),
        all(
            "wasi:clocks/monotonic-clock",
            Some(Clocks),
            "reads the clock",
        ),
        ForbiddenImport {
            interface: "toolbay:plugin/host",
            functions: &["ask", "resource-updated"],
            allowance: None,
            does: "asks or notifies the caller",
        },
        ForbiddenImport {
            interface: "wasi:keyvalue/store",
            functions: &["open"],
            allowance: None,
            does: "opens a store",
        },
        all("wasi:http/outgoing-handler", None, "sends an HTTP request"),
        all("wasi:sockets/instance-network", None, "uses the network"),
        all("wasi:sockets/tcp-create-socket", None, "uses the network"),
    ]
};

impl InitAllowance {
    /// All allowances, with their names on the command line.
    pub const ALL: [(Self, &str); 4] = [
        (Self::Environment, "environment"),
        (Self::Folders, "folders"),
        (Self::Random, "random"),
        (Self::Clocks, "clocks"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == self)
            .map_or("", |(_, name)| name)
    }
}

/// Returns the linker with errors in place of the imports that the initialization must not use.
pub(super) fn shadow_forbidden_imports(
    linker: &Linker<StoreState>,
    engine: &Engine,
    component: &Component,
    allowed: &BTreeSet<InitAllowance>,
) -> wasmtime::Result<Linker<StoreState>> {
    let mut linker = linker.clone();
    linker.allow_shadowing(true);
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else {
            continue;
        };
        let interface = name.split('@').next().unwrap_or_default();
        for refused in FORBIDDEN_IMPORTS
            .iter()
            .filter(|refused| refused.interface == interface)
        {
            if refused
                .allowance
                .is_some_and(|allowance| allowed.contains(&allowance))
            {
                continue;
            }
            let mut instead = linker.instance(name)?;
            for (function, item) in instance.exports(engine) {
                let concerned =
                    refused.functions.is_empty() || refused.functions.contains(&function);
                if !concerned || !matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                    continue;
                }
                let why = refused.message(&format!("{name}#{function}"));
                instead.func_new(function, move |_, _, _, _| {
                    Err(InitFailure(why.clone()).into())
                })?;
            }
        }
    }
    Ok(linker)
}

impl ForbiddenImport {
    /// Describes the use of the import and the remedy.
    fn message(&self, function: &str) -> String {
        let Self {
            allowance, does, ..
        } = self;
        let first = "do that when a tool is first called";
        let cure = match allowance {
            Some(allowance) => format!("{first}, or allow it with --allow {}", allowance.name()),
            None => first.to_owned(),
        };
        let part = if allowance.is_some() {
            ", and the answer would become part of the file"
        } else {
            ""
        };
        format!("its initialization {does} ({function}){part}: {cure}")
    }
}
