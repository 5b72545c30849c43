//! The modules of a crate, with what each defines, imports and mentions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::scan::Mention;

/// A module's place in [`Tree::modules`].
pub(crate) type Id = usize;

/// Where the crate's root is.
pub(crate) const ROOT: Id = 0;

/// A crate's modules. The root is first.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
    /// What `macro_rules!` defines, by name: macros are visible across modules without a path.
    pub(crate) macros: BTreeMap<String, Id>,
}

/// One module, a file or inline.
#[derive(Debug)]
pub(crate) struct Module {
    /// As `catalog::tool`; empty for the root.
    pub(crate) path: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<Id>,
    /// The module that is the file which this one is written in: itself, unless it is inline.
    pub(crate) node: Id,
    pub(crate) children: BTreeMap<String, Id>,
    /// What it defines.
    pub(crate) items: BTreeSet<String>,
    /// The methods of the traits that it defines.
    pub(crate) traits: BTreeMap<String, Vec<String>>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: Vec<Mention>,
    /// The inherent functions that it gives to types: the type as it is written, and the function.
    pub(crate) inherent: Vec<(Vec<String>, String)>,
    /// The names of the methods that its code calls.
    pub(crate) called: BTreeSet<String>,
}

/// One name that a `use` brings into a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// What it is called here; none for a glob, and for `_`.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    pub(crate) is_glob: bool,
    /// Whether other modules can use it from here.
    pub(crate) is_export: bool,
}

impl Tree {
    pub(crate) fn module(&self, id: Id) -> &Module {
        #[allow(clippy::indexing_slicing, reason = "identities are handed out by `add`, and modules are never removed")]
        &self.modules[id]
    }

    pub(crate) fn module_mut(&mut self, id: Id) -> &mut Module {
        #[allow(clippy::indexing_slicing, reason = "as above")]
        &mut self.modules[id]
    }

    /// Whether a module is further down than another.
    pub(crate) fn is_below(&self, id: Id, above: Id) -> bool {
        id != above && self.child_above(above, id).is_some()
    }

    /// The child of a module that another one is, or is below of.
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

    /// Adds a module. One without a file is in the file of its parent.
    pub(crate) fn add(&mut self, parent: Option<Id>, name: &str, file: Option<PathBuf>) -> Id {
        let id = self.modules.len();
        let (mut path, mut node) = (Vec::new(), id);
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
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "crate".to_owned() } else { self.path.join("::") }
    }
}
