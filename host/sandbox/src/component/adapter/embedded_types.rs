//! Types that are embedded in a core module: those of the contract, or of the `.wit` file next to it.

use std::collections::BTreeSet;

use toolbay_model::text::join_lines;
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, UnresolvedPackageGroup, World, WorldId, WorldItem};

use super::module_summary::ModuleSummary;
use crate::component::contract_interface::ContractInterface;
use crate::component::contract_versions::SUPPORTED_VERSIONS;

/// The name and the text of a WIT file.
type WitFileText = (&'static str, &'static str);

/// WASI interfaces that a core module can import in addition to the contract. Each entry has the
/// prefix of the import names, the imports of the world, and the WIT packages that define them.
const WASI_IMPORTS: [(&str, &str, &[WitFileText]); 2] = [
    (
        "wasi:http/",
        "import wasi:http/types@0.2.0; import wasi:http/outgoing-handler@0.2.0;",
        &[
            ("io.wit", include_str!("../../../../../wit/wasi/io.wit")),
            ("http.wit", include_str!("../../../../../wit/wasi/http.wit")),
        ],
    ),
    (
        "wasi:keyvalue/",
        "import wasi:keyvalue/store@0.2.0-draft; import wasi:keyvalue/atomics@0.2.0-draft;",
        &[(
            "keyvalue.wit",
            include_str!("../../../../../wit/wasi/keyvalue.wit"),
        )],
    ),
];

/// A supported version of the contract, its WIT, and the interfaces whose functions a module
/// exports.
pub(super) struct SupportedContract<'a> {
    version: &'static str,
    wit: &'static str,
    interfaces: &'a BTreeSet<ContractInterface>,
}

/// Returns the contract that a module implements, or `None` if it implements no supported contract.
///
/// # Errors
///
/// It implements several.
pub(super) fn find_contract(
    summary: &ModuleSummary,
) -> Result<Option<SupportedContract<'_>>, String> {
    let mut supported = SUPPORTED_VERSIONS.into_iter().filter_map(|(version, wit)| {
        let interfaces = summary.contract.get(version)?;
        Some(SupportedContract {
            version,
            wit,
            interfaces,
        })
    });
    match (supported.next(), supported.next()) {
        (Some(one), Some(other)) => Err(format!(
            "a core module that exports functions of toolbay:plugin@{} and of toolbay:plugin@{}; build it against one \
             version of the contract",
            one.version, other.version
        )),
        (only, _) => Ok(only),
    }
}

/// Embeds the types of the contract and of the module's WASI imports in the module.
pub(super) fn embed_contract(
    mut module: Vec<u8>,
    contract: &SupportedContract<'_>,
    summary: &ModuleSummary,
) -> anyhow::Result<Vec<u8>> {
    let SupportedContract {
        version,
        wit,
        interfaces,
    } = contract;
    let mut resolve = Resolve::default();
    resolve.push_str("plugin.wit", wit)?;
    let exports = interfaces
        .iter()
        .map(|interface| format!("export toolbay:plugin/{}@{version};", interface.name()));
    let exports: String = exports.collect();
    let mut world = format!(
        "package toolbay:module; world module {{ import toolbay:plugin/host@{version}; {exports}"
    );
    for (prefix, imports, packages) in WASI_IMPORTS {
        if summary
            .names
            .imports
            .iter()
            .any(|(module, _)| module.starts_with(prefix))
        {
            world += imports;
            for (file, wit) in packages {
                resolve.push_str(file, wit)?;
            }
        }
    }
    let package = resolve.push_str("module.wit", &(world + "}"))?;
    let world = resolve.select_world(&[package], Some("module"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}

/// Embeds the types of the world in `wit` in the module. Returns `None` if the module exports no
/// function of that world.
///
/// # Errors
///
/// The text is not valid WIT, or does not identify one world.
pub(super) fn embed_wit(
    module: &[u8],
    wit: &str,
    summary: &ModuleSummary,
) -> Result<Option<Vec<u8>>, String> {
    if wit.is_empty() {
        return Ok(None);
    }
    let (resolve, world) = parse_world(wit)?;
    let Some(functions) = resolve
        .worlds
        .get(world)
        .map(|world| core_export_names(&resolve, world))
    else {
        return Ok(None);
    };
    if !functions
        .iter()
        .any(|name| summary.names.exports.contains(name))
    {
        return Ok(None);
    }
    let mut module = module.to_vec();
    let embedded = embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8);
    embedded.map_err(|error| format!("its .wit file does not match the module: {error:#}"))?;
    Ok(Some(module))
}

/// Parses a WIT file and returns its only world.
fn parse_world(wit: &str) -> Result<(Resolve, WorldId), String> {
    let describe = |why: String| format!("its .wit file is not valid: {}", join_lines(&why));
    let mut resolve = Resolve::default();
    let group = UnresolvedPackageGroup::parse("wit", wit)
        .map_err(|(sources, error)| describe(error.render(&sources)))?;
    let package = resolve
        .push_group(group)
        .map_err(|error| describe(format!("{error:#}")))?;
    let world = resolve
        .select_world(&[package], None)
        .map_err(|error| describe(format!("{error:#}")))?;
    Ok((resolve, world))
}

/// Returns the names under which a core module exports the functions of a world.
fn core_export_names(resolve: &Resolve, world: &World) -> Vec<String> {
    let mut names = Vec::new();
    for (key, item) in &world.exports {
        match item {
            WorldItem::Function(function) => names.push(function.name.clone()),
            WorldItem::Interface { id, .. } => {
                let interface = resolve.name_world_key(key);
                let functions = resolve
                    .interfaces
                    .get(*id)
                    .into_iter()
                    .flat_map(|interface| interface.functions.keys());
                names.extend(functions.map(|function| format!("{interface}#{function}")));
            }
            WorldItem::Type { .. } => {}
        }
    }
    names
}
