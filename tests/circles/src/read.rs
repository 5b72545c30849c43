//! Reads a crate's files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use quote::ToTokens;
use syn::{
    ImplItem, Item, ItemImpl, ItemMacro, ItemMod, ItemTrait, TraitItem, Type, UseTree, Visibility,
};

use crate::cfg;
use crate::scan::{Scan, plain};
use crate::tree::{Id, Import, ROOT, Tree};

/// Reads the crate whose root is this file.
pub(crate) fn crate_at(root: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    let id = tree.add(None, "", Some(root.to_owned()));
    file(&mut tree, id, root, root.parent().unwrap_or(Path::new("")))?;
    Ok(tree)
}

/// Reads a file. The files of its modules are in `folder`.
fn file(tree: &mut Tree, id: Id, path: &Path, folder: &Path) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    let parsed =
        syn::parse_file(&text).with_context(|| format!("failed to parse {}", path.display()))?;
    if cfg::is_left_out(&parsed.attrs) {
        return Ok(());
    }
    items(tree, id, &parsed.items, folder)
}

fn items(tree: &mut Tree, id: Id, items: &[Item], folder: &Path) -> Result<()> {
    items
        .iter()
        .try_for_each(|item| self::item(tree, id, item, folder))
}

fn item(tree: &mut Tree, id: Id, item: &Item, folder: &Path) -> Result<()> {
    let (attributes, name) = match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::ExternCrate(item) => (&item.attrs, None),
        Item::ForeignMod(item) => (&item.attrs, None),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, None),
        Item::Mod(item) => (&item.attrs, None),
        Item::Use(item) => (&item.attrs, None),
        _ => {
            scan(tree, id, None, item);
            return Ok(());
        }
    };
    if cfg::is_left_out(attributes) {
        return Ok(());
    }
    if let Some(name) = name {
        tree.module_mut(id).items.insert(plain(&name.to_string()));
    }
    match item {
        Item::Mod(item) => return module(tree, id, item, folder),
        Item::Use(item) => {
            // `pub(self)` is as private as no visibility at all.
            let is_export = match &item.vis {
                Visibility::Inherited => false,
                Visibility::Restricted(to) => !to.path.is_ident("self"),
                Visibility::Public(_) => true,
            };
            if item.leading_colon.is_none() {
                imports(&item.tree, &[], is_export, &mut tree.module_mut(id).imports);
            }
        }
        Item::ExternCrate(item) if item.ident == "self" => {
            let name = item
                .rename
                .as_ref()
                .map(|(_, name)| plain(&name.to_string()));
            let path = vec!["crate".to_owned()];
            tree.module_mut(id).imports.push(Import {
                name,
                path,
                is_glob: false,
                is_export: false,
            });
        }
        Item::Impl(item) => implementation(tree, id, item),
        Item::Trait(item) => interface(tree, id, item),
        Item::Macro(item) => macro_item(tree, id, item),
        _ => scan(tree, id, None, item),
    }
    Ok(())
}

fn module(tree: &mut Tree, id: Id, item: &ItemMod, folder: &Path) -> Result<()> {
    let name = plain(&item.ident.to_string());
    if let Some((_, content)) = &item.content {
        let child = tree.add(Some(id), &name, None);
        return items(tree, child, content, &folder.join(name));
    }
    let given = item.attrs.iter().find_map(path_attribute);
    let file_path = match given {
        Some(given) => beside(&tree.module(id).file, &given),
        None => found(folder, &name)?,
    };
    let child = tree.add(Some(id), &name, Some(file_path.clone()));
    let is_folder_s = file_path.file_name().is_some_and(|file| file == "mod.rs");
    let below = if is_folder_s {
        file_path.parent().map(Path::to_owned).unwrap_or_default()
    } else {
        folder.join(name)
    };
    file(tree, child, &file_path, &below)
}

fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let pair = attribute.meta.require_name_value().ok()?;
    if !pair.path.is_ident("path") {
        return None;
    }
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

fn beside(file: &Path, other: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(other)
}

/// Returns the path of a module's file.
fn found(folder: &Path, name: &str) -> Result<PathBuf> {
    let files = [
        folder.join(name).with_extension("rs"),
        folder.join(name).join("mod.rs"),
    ];
    match files.iter().find(|file| file.is_file()) {
        Some(file) => Ok(file.clone()),
        None => {
            bail!(
                "the module {name} has no file: {} is not there",
                folder.join(name).with_extension("rs").display()
            )
        }
    }
}

fn imports(tree: &UseTree, before: &[String], is_export: bool, into: &mut Vec<Import>) {
    let with = |name: &syn::Ident| {
        let mut path = before.to_vec();
        path.push(plain(&name.to_string()));
        path
    };
    match tree {
        UseTree::Path(path) => imports(&path.tree, &with(&path.ident), is_export, into),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| imports(tree, before, is_export, into)),
        UseTree::Glob(_) => into.push(Import {
            name: None,
            path: before.to_vec(),
            is_glob: true,
            is_export,
        }),
        UseTree::Name(name) => {
            let path = if name.ident == "self" {
                before.to_vec()
            } else {
                with(&name.ident)
            };
            into.push(Import {
                name: path.last().cloned(),
                path,
                is_glob: false,
                is_export,
            });
        }
        UseTree::Rename(rename) => {
            let path = if rename.ident == "self" {
                before.to_vec()
            } else {
                with(&rename.ident)
            };
            let name = Some(plain(&rename.rename.to_string())).filter(|name| name != "_");
            into.push(Import {
                name,
                path,
                is_glob: false,
                is_export,
            });
        }
    }
}

fn implementation(tree: &mut Tree, id: Id, item: &ItemImpl) {
    let of = match &*item.self_ty {
        Type::Path(path) => Some(
            path.path
                .segments
                .iter()
                .map(|segment| plain(&segment.ident.to_string()))
                .collect::<Vec<_>>(),
        ),
        _ => None,
    };
    scan(tree, id, None, &item.self_ty);
    scan(tree, id, None, &item.generics);
    scan(tree, id, None, &item.generics.where_clause);
    if let Some((_, path, _)) = &item.trait_ {
        scan(tree, id, None, path);
    }
    for part in &item.items {
        let (attributes, name) = match part {
            ImplItem::Fn(part) => (&part.attrs, Some(&part.sig.ident)),
            ImplItem::Const(part) => (&part.attrs, Some(&part.ident)),
            ImplItem::Type(part) => (&part.attrs, None),
            ImplItem::Macro(part) => (&part.attrs, None),
            _ => continue,
        };
        if cfg::is_left_out(attributes) {
            continue;
        }
        if let (None, Some(of), Some(name)) = (&item.trait_, &of, name) {
            tree.module_mut(id)
                .inherent
                .push((of.clone(), plain(&name.to_string())));
        }
        scan(tree, id, of.clone(), part);
    }
}

fn interface(tree: &mut Tree, id: Id, item: &ItemTrait) {
    let mut methods = Vec::new();
    scan(tree, id, None, &item.generics);
    scan(tree, id, None, &item.generics.where_clause);
    scan(tree, id, None, &item.supertraits);
    for part in &item.items {
        let attributes = match part {
            TraitItem::Fn(part) => {
                methods.push(plain(&part.sig.ident.to_string()));
                &part.attrs
            }
            TraitItem::Const(part) => &part.attrs,
            TraitItem::Type(part) => &part.attrs,
            TraitItem::Macro(part) => &part.attrs,
            _ => continue,
        };
        if !cfg::is_left_out(attributes) {
            scan(tree, id, None, part);
        }
    }
    tree.module_mut(id)
        .traits
        .insert(plain(&item.ident.to_string()), methods);
}

fn macro_item(tree: &mut Tree, id: Id, item: &ItemMacro) {
    if let Some(name) = &item.ident {
        let name = plain(&name.to_string());
        tree.macros.insert(name.clone(), id);
        if item
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("macro_export"))
        {
            let path = vec!["crate".to_owned()]
                .into_iter()
                .chain(tree.module(id).path.clone())
                .chain([name.clone()]);
            let export = Import {
                name: Some(name.clone()),
                path: path.collect(),
                is_glob: false,
                is_export: true,
            };
            if id != ROOT {
                tree.module_mut(ROOT).imports.push(export);
            }
        }
        tree.module_mut(id).items.insert(name);
    }
    scan(tree, id, None, item);
}

/// Records the names and the imports in a piece of a module's code.
fn scan(tree: &mut Tree, id: Id, of: Option<Vec<String>>, code: &impl ToTokens) {
    let mut scan = Scan::within(of);
    scan.code(code.to_token_stream());
    let module = tree.module_mut(id);
    module.mentions.extend(scan.mentions);
    module.called.extend(scan.called);
    for item in scan.uses {
        if item.leading_colon.is_none() {
            imports(&item.tree, &[], false, &mut module.imports);
        }
    }
}
