//! The author's documentation of plain functions, from the component or from a `.wit` file next to
//! it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};
use wit_parser::{Resolve, Type, TypeDefKind, UnresolvedPackageGroup, WorldItem, WorldKey};

/// The documentation of a component's exported functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ComponentDocs {
    /// The documentation by `function` or `namespace:package/interface#function`, without a
    /// version.
    pub(crate) functions: BTreeMap<String, FunctionDocs>,
}

/// The documentation of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FunctionDocs {
    /// The documentation of the function itself.
    pub(crate) text: Option<String>,
    /// The documentation of the parts of its parameters and its result, by a path of names such as
    /// `/request/units`. Paths into the result begin with [`RESULT_PREFIX`].
    pub(crate) parts: BTreeMap<String, String>,
}

/// The prefix of paths into the result.
pub(crate) const RESULT_PREFIX: &str = "=";

impl ComponentDocs {
    /// Returns the documentation of the function `name` of `interface`, or of the world.
    pub(crate) fn get(&self, interface: Option<&str>, name: &str) -> Option<&FunctionDocs> {
        let Some(interface) = interface else {
            return self.functions.get(name);
        };
        let interface = interface.split('@').next().unwrap_or_default();
        let find = |interface: &str| self.functions.get(&format!("{interface}#{name}"));
        // The component's own section has only the last part of interface names.
        find(interface).or_else(|| find(interface.rsplit('/').next().unwrap_or_default()))
    }
}

/// The section of a component that contains its documentation, as `wit-component` writes it.
const DOCS_SECTION: &str = "package-docs";

/// Maximum number of documented parts in a signature.
const MAX_PARTS: usize = 1_000;

/// Maximum nesting depth to which a signature is searched for documentation.
const MAX_DEPTH: usize = 16;

impl ComponentDocs {
    /// Reads the documentation in the component itself. Unreadable documentation is ignored,
    /// because it is not essential.
    pub(crate) fn from_component(bytes: &[u8]) -> Self {
        let mut docs = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload {
                Ok(Payload::CustomSection(section))
                    if depth == 0 && section.name() == DOCS_SECTION =>
                {
                    // A version byte, followed by JSON.
                    let json = section.data().get(1..).unwrap_or_default();
                    if let Ok(metadata) = serde_json::from_slice::<PackageMetadata>(json) {
                        docs.add_package(metadata);
                    }
                }
                Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
                Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        docs
    }

    fn add_package(&mut self, metadata: PackageMetadata) {
        let mut add = |key: String, function: PackageFunctionDocs| {
            let text = match function {
                PackageFunctionDocs::Text(text) => Some(text),
                PackageFunctionDocs::Docs { docs } => docs,
            };
            if text.is_some() {
                self.functions.entry(key).or_insert(FunctionDocs {
                    text,
                    parts: BTreeMap::new(),
                });
            }
        };
        for world in metadata.worlds.into_values() {
            for (name, function) in world.funcs.into_iter().chain(world.func_exports) {
                add(name, function);
            }
            for (interface, docs) in world.interfaces.into_iter().chain(world.interface_exports) {
                for (name, function) in docs.funcs {
                    add(format!("{interface}#{name}"), function);
                }
            }
        }
        for (interface, docs) in metadata.interfaces {
            for (name, function) in docs.funcs {
                add(format!("{interface}#{name}"), function);
            }
        }
    }

    /// Reads the documentation in a `.wit` file.
    ///
    /// # Errors
    ///
    /// The location where the text is not valid WIT.
    pub(crate) fn from_wit(text: &str) -> Result<Self, String> {
        let mut resolve = Resolve::default();
        let group = UnresolvedPackageGroup::parse("wit", text)
            .map_err(|(sources, error)| error.render(&sources))?;
        resolve
            .push_group(group)
            .map_err(|error| format!("{error:#}"))?;
        let mut docs = Self::default();
        for (_, interface) in &resolve.interfaces {
            let Some(name) = &interface.name else {
                continue;
            };
            let package = interface.package.and_then(|id| resolve.packages.get(id));
            let prefix =
                package.map(|package| format!("{}:{}/", package.name.namespace, package.name.name));
            let prefix = prefix.unwrap_or_default();
            for function in interface.functions.values() {
                docs.insert(
                    &resolve,
                    format!("{prefix}{name}#{}", function.name),
                    function,
                );
            }
        }
        for (_, world) in &resolve.worlds {
            for (key, item) in &world.exports {
                match item {
                    WorldItem::Function(function) => {
                        docs.insert(&resolve, function.name.clone(), function);
                    }
                    WorldItem::Interface { id, .. } => {
                        if let (WorldKey::Name(name), Some(interface)) =
                            (key, resolve.interfaces.get(*id))
                        {
                            for function in interface.functions.values() {
                                docs.insert(
                                    &resolve,
                                    format!("{name}#{}", function.name),
                                    function,
                                );
                            }
                        }
                    }
                    WorldItem::Type { .. } => {}
                }
            }
        }
        Ok(docs)
    }

    fn insert(&mut self, resolve: &Resolve, key: String, function: &wit_parser::Function) {
        let mut parts = BTreeMap::new();
        for parameter in &function.params {
            collect_type_docs(
                resolve,
                &parameter.ty,
                &format!("/{}", parameter.name),
                0,
                &mut parts,
            );
        }
        if let Some(ty) = &function.result {
            collect_type_docs(resolve, ty, RESULT_PREFIX, 0, &mut parts);
        }
        let docs = FunctionDocs {
            text: function.docs.contents.as_deref().map(trim),
            parts,
        };
        if docs != FunctionDocs::default() {
            self.functions.insert(key, docs);
        }
    }
}

/// Collects the documentation of the fields and cases of a type.
fn collect_type_docs(
    resolve: &Resolve,
    ty: &Type,
    path: &str,
    depth: usize,
    parts: &mut BTreeMap<String, String>,
) {
    let Type::Id(id) = ty else { return };
    let Some(def) = resolve.types.get(*id) else {
        return;
    };
    if depth > MAX_DEPTH || parts.len() > MAX_PARTS {
        return;
    }
    let mut inner = |ty: &Type, path: &str| collect_type_docs(resolve, ty, path, depth + 1, parts);
    let mut field_docs = Vec::new();
    match &def.kind {
        TypeDefKind::Type(ty) | TypeDefKind::Option(ty) | TypeDefKind::List(ty) => inner(ty, path),
        TypeDefKind::Tuple(tuple) => tuple.types.iter().for_each(|ty| inner(ty, path)),
        TypeDefKind::Result(result) => {
            result
                .ok
                .iter()
                .chain(&result.err)
                .for_each(|ty| inner(ty, path));
        }
        TypeDefKind::Record(record) => {
            for field in &record.fields {
                let path = format!("{path}/{}", field.name);
                inner(&field.ty, &path);
                field_docs.push((path, &field.docs));
            }
        }
        TypeDefKind::Variant(variant) => {
            for case in &variant.cases {
                if let Some(ty) = &case.ty {
                    inner(ty, &format!("{path}/{}", case.name));
                }
            }
        }
        _ => {}
    }
    // A field's own documentation takes precedence over that of its type.
    for (path, docs) in field_docs {
        if let Some(text) = &docs.contents {
            parts.insert(path, trim(text));
        }
    }
    if let Some(text) = &def.docs.contents {
        parts.entry(path.to_owned()).or_insert_with(|| trim(text));
    }
}

fn trim(text: &str) -> String {
    text.trim().to_owned()
}

/// The documentation of a package, as `wit-parser` writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageMetadata {
    worlds: BTreeMap<String, WorldDocs>,
    interfaces: BTreeMap<String, InterfaceDocs>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorldDocs {
    funcs: BTreeMap<String, PackageFunctionDocs>,
    func_exports: BTreeMap<String, PackageFunctionDocs>,
    interfaces: BTreeMap<String, InterfaceDocs>,
    interface_exports: BTreeMap<String, InterfaceDocs>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InterfaceDocs {
    funcs: BTreeMap<String, PackageFunctionDocs>,
}

/// The documentation of a function: a string in the first version of the format, and an object in
/// later ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum PackageFunctionDocs {
    Text(String),
    Docs { docs: Option<String> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wit_file_documents_functions_and_their_parts() {
        let wit = "package a:b@1.0.0;
            interface weather {
                /// The question.
                record request {
                    /// Where.
                    place: string,
                    days: option<u8>,
                }
                /// Foretells the weather.
                forecast: func(ask: request) -> result<string, string>;
            }
            world w {
                export weather;
                /// Says hello.
                export hello: func(name: string) -> string;
            }";
        let docs = ComponentDocs::from_wit(wit).unwrap();
        let forecast = docs.get(Some("a:b/weather@1.0.0"), "forecast").unwrap();
        assert_eq!(forecast.text.as_deref(), Some("Foretells the weather."));
        assert_eq!(forecast.parts["/ask/place"], "Where.");
        assert_eq!(forecast.parts["/ask"], "The question.");
        assert_eq!(
            docs.get(None, "hello").unwrap().text.as_deref(),
            Some("Says hello.")
        );
        assert_eq!(docs.get(None, "goodbye"), None);
    }

    #[test]
    fn an_error_in_a_wit_file_has_a_place() {
        let why = ComponentDocs::from_wit("package a:b;\nworld {").unwrap_err();
        assert!(
            why.contains("expected an identifier") && why.contains("wit:2:"),
            "{why}"
        );
    }

    #[test]
    fn a_component_can_contain_its_documentation() {
        let json = r#"{"worlds":{"root":{"func_exports":{"hello":{"docs":"Says hello."}}}},"interfaces":{"weather":{"funcs":{"forecast":"Foretells."}}}}"#;
        let wat = format!(
            r#"(component (@custom "package-docs" "\01{}"))"#,
            json.replace('"', "\\\"")
        );
        let docs = ComponentDocs::from_component(&wat::parse_str(wat).unwrap());
        assert_eq!(
            docs.get(None, "hello").unwrap().text.as_deref(),
            Some("Says hello.")
        );
        assert_eq!(
            docs.get(Some("a:b/weather@1.0.0"), "forecast")
                .unwrap()
                .text
                .as_deref(),
            Some("Foretells.")
        );
    }
}
