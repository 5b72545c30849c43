//! The modules of a crate, with the items, imports and mentions of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::scan::Mention;

/// Index of a module in [`Tree::modules`].
pub(crate) type Id = usize;

/// Index of the crate's root.
pub(crate) const ROOT: Id = 0;

/// The modules of a crate. The root is first.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
    /// The modules that define macros with `macro_rules!`, by name. Macros are visible across
    /// modules without a path.
    pub(crate) macros: BTreeMap<String, Id>,
}

/// A module, in its own file or inline.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its path, such as `catalog::tool`; empty for the root.
    pub(crate) path: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<Id>,
    /// The file module that contains this one: itself, unless it is inline.
    pub(crate) node: Id,
    pub(crate) children: BTreeMap<String, Id>,
    /// The names of the items that it defines.
    pub(crate) items: BTreeSet<String>,
    /// The methods of the traits that it defines, by trait.
    pub(crate) traits: BTreeMap<String, Vec<String>>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: Vec<Mention>,
    /// The inherent functions that it defines: the type as written, and the name of the function.
    pub(crate) inherent: Vec<(Vec<String>, String)>,
    /// The names of the methods that its code calls.
    pub(crate) called: BTreeSet<String>,
}

/// A name that a `use` brings into a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The local name; `None` for a glob and for `_`.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    pub(crate) is_glob: bool,
    /// True if other modules can use it from here.
    pub(crate) is_export: bool,
}

impl Tree {
    pub(crate) fn module(&self, id: Id) -> &Module {
        #[allow(
            clippy::indexing_slicing,
            reason = "identities are handed out by `add`, and modules are never removed"
        )]
        &self.modules[id]
    }

    pub(crate) fn module_mut(&mut self, id: Id) -> &mut Module {
        #[allow(clippy::indexing_slicing, reason = "as above")]
        &mut self.modules[id]
    }

    /// Returns whether a module is a descendant of another one.
    pub(crate) fn is_below(&self, id: Id, above: Id) -> bool {
        id != above && self.child_above(above, id).is_some()
    }

    /// Returns the child of `parent` that is the module or one of its ancestors.
    pub(crate) fn child_above(&self, parent: Id, id: Id) -> Option<Id> {
        let mut at = id;
        loop {
            let above = self.module(at).parent?;
            if above == parent {
                return Some(at);
            }
            at = above;
        }
    }

    /// Adds a module. A module without a file is in the file of its parent.
    pub(crate) fn add(&mut self, parent: Option<Id>, name: &str, file: Option<PathBuf>) -> Id {
        let id = self.modules.len();
        let mut path = Vec::new();
        let mut node = id;
        let mut written_in = PathBuf::new();
        if let Some(parent) = parent {
            let parent = self.module_mut(parent);
            parent.children.insert(name.to_owned(), id);
            path.clone_from(&parent.path);
            path.push(name.to_owned());
            if file.is_none() {
                node = parent.node;
                written_in.clone_from(&parent.file);
            }
        }
        self.modules.push(Module {
            path,
            file: file.unwrap_or(written_in),
            parent,
            node,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            traits: BTreeMap::new(),
            imports: Vec::new(),
            mentions: Vec::new(),
            inherent: Vec::new(),
            called: BTreeSet::new(),
        });
        id
    }
}

impl Module {
    /// Returns its name for output.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() {
            "crate".to_owned()
        } else {
            self.path.join("::")
        }
    }
}
