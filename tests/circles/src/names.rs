//! Resolves names to the modules that define them.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Id, Import, ROOT, Tree};

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Module(Id),
    /// An item that a module defines, and the remaining segments of the path.
    Item(Id, String, Vec<String>),
}

/// The modules with inherent functions of a type, by the defining module and name of the type, and
/// by the name of the function.
type Inherent = BTreeMap<(Id, String), BTreeMap<String, BTreeSet<Id>>>;

/// The names that a resolution has passed through, to stop at import cycles.
type Seen = BTreeSet<(Id, String)>;

/// The name resolver of a crate.
pub(crate) struct Names<'a> {
    tree: &'a Tree,
    inherent: Inherent,
}

impl<'a> Names<'a> {
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let mut names = Self {
            tree,
            inherent: Inherent::new(),
        };
        let mut inherent = Inherent::new();
        for (id, module) in tree.modules.iter().enumerate() {
            for (of, function) in &module.inherent {
                if let Some(Target::Item(definer, name, _)) = names.resolve(id, of) {
                    inherent
                        .entry((definer, name))
                        .or_default()
                        .entry(function.clone())
                        .or_default()
                        .insert(id);
                }
            }
        }
        names.inherent = inherent;
        names
    }

    /// Resolves a path from a module. Returns `None` if it leads to another crate or is not a path.
    pub(crate) fn resolve(&self, from: Id, path: &[String]) -> Option<Target> {
        self.follow(from, path, &mut Seen::new())
    }

    /// Returns the modules whose code a path requires.
    pub(crate) fn definers(&self, from: Id, path: &[String]) -> BTreeSet<Id> {
        let mut definers = BTreeSet::new();
        if let Some(Target::Item(definer, name, rest)) = self.resolve(from, path) {
            definers.insert(definer);
            let functions = self.inherent.get(&(definer, name));
            let found = rest
                .first()
                .zip(functions)
                .and_then(|(function, functions)| functions.get(function));
            definers.extend(found.into_iter().flatten());
        }
        definers
    }

    /// Returns whether a module has a name only through a glob or a re-exporting import.
    pub(crate) fn is_passed_on(&self, from: Id, name: &str) -> bool {
        let module = self.tree.module(from);
        !module.items.contains(name)
            && module
                .imports
                .iter()
                .all(|import| import.name.as_deref() != Some(name) || import.is_export)
    }

    /// Returns the trait's methods if an import resolves to a trait.
    pub(crate) fn methods(&self, from: Id, import: &Import) -> &[String] {
        match self.resolve(from, &import.path) {
            Some(Target::Item(definer, name, _)) => self
                .tree
                .module(definer)
                .traits
                .get(&name)
                .map(Vec::as_slice)
                .unwrap_or_default(),
            _ => &[],
        }
    }

    fn follow(&self, from: Id, path: &[String], seen: &mut Seen) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let begin = match first.as_str() {
            "crate" => Target::Module(ROOT),
            "self" => Target::Module(from),
            "super" => Target::Module(self.tree.module(from).parent?),
            name => self.look_up(from, name, rest.is_empty(), seen)?,
        };
        let mut at = begin;
        for (index, segment) in rest.iter().enumerate() {
            at = match at {
                Target::Module(id) if segment == "super" => {
                    Target::Module(self.tree.module(id).parent?)
                }
                Target::Module(id) => self.look_up(id, segment, index + 1 == rest.len(), seen)?,
                Target::Item(id, name, mut after) => {
                    after.push(segment.clone());
                    Target::Item(id, name, after)
                }
            };
        }
        Some(at)
    }

    /// Resolves a name in a module. If a module and another item share it, only the module can be
    /// followed by further segments.
    fn look_up(&self, id: Id, name: &str, is_last: bool, seen: &mut Seen) -> Option<Target> {
        let module = self.tree.module(id);
        let child = module
            .children
            .get(name)
            .map(|child| Target::Module(*child));
        let own = module
            .items
            .contains(name)
            .then(|| Target::Item(id, name.to_owned(), Vec::new()));
        let found = if is_last {
            own.or(child)
        } else {
            child.or(own)
        };
        if found.is_some() || !seen.insert((id, name.to_owned())) {
            return found;
        }
        let named = module
            .imports
            .iter()
            .filter(|import| import.name.as_deref() == Some(name));
        let mut targets: Vec<Target> = named
            .filter_map(|import| self.follow(id, &import.path, seen))
            .collect();
        // Where a name may be either, an item takes precedence over a module.
        targets.sort_by_key(|target| matches!(target, Target::Module(_)) == is_last);
        if let Some(target) = targets.into_iter().next() {
            seen.remove(&(id, name.to_owned()));
            return Some(target);
        }
        let mut globs = module.imports.iter().filter(|import| import.is_glob);
        let found = globs.find_map(|glob| self.glob(id, glob, name, is_last, seen));
        seen.remove(&(id, name.to_owned()));
        found
    }

    fn glob(
        &self,
        id: Id,
        glob: &Import,
        name: &str,
        is_last: bool,
        seen: &mut Seen,
    ) -> Option<Target> {
        match self.follow(id, &glob.path, seen)? {
            Target::Module(target) => self.look_up(target, name, is_last, seen),
            // The variants of an enum belong to the enum, and the import itself already counts.
            Target::Item(..) => None,
        }
    }
}
