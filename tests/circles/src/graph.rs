//! The dependency graph of the files, and its cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use crate::circle::{Circle, Step};
use crate::names::{Names, Target};
use crate::scan::Mention;
use crate::tree::{Id, Tree};

/// The dependencies between files, each with the path in code that causes it.
pub(crate) struct Graph<'a> {
    tree: &'a Tree,
    edges: BTreeMap<Id, BTreeMap<Id, Vec<String>>>,
}

/// Dependencies between the compared units, each with a file dependency that causes it.
type Links = BTreeMap<Id, BTreeMap<Id, Link>>;

/// A dependency of one file on another.
struct Link {
    from: Id,
    to: Id,
    path: Vec<String>,
}

impl<'a> Graph<'a> {
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let mut graph = Self {
            tree,
            edges: BTreeMap::new(),
        };
        let names = Names::of(tree);
        for (id, module) in tree.modules.iter().enumerate() {
            for import in &module.imports {
                let definers = names.definers(id, &import.path);
                let is_used = names
                    .methods(id, import)
                    .iter()
                    .any(|method| module.called.contains(method));
                for definer in definers {
                    if !import.is_export || is_used || !tree.is_below(definer, id) {
                        graph.add(id, definer, &import.path);
                    }
                }
            }
            for mention in &module.mentions {
                for definer in graph.mentioned(&names, id, mention) {
                    graph.add(id, definer, &mention.path);
                }
            }
        }
        graph
    }

    /// Returns the cycles of files.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let links = self.edges.iter().map(|(from, to)| {
            (
                *from,
                to.iter()
                    .map(|(to, path)| {
                        (
                            *to,
                            Link {
                                from: *from,
                                to: *to,
                                path: path.clone(),
                            },
                        )
                    })
                    .collect(),
            )
        });
        self.circles_of(&links.collect())
    }

    /// Returns the cycles of siblings, each with all its descendants.
    pub(crate) fn folder_circles(&self) -> Vec<Circle> {
        (0..self.tree.modules.len())
            .flat_map(|parent| self.circles_of(&self.links_below(parent)))
            .collect()
    }

    /// Returns every dependency in human-readable form.
    pub(crate) fn lines(&self) -> Vec<String> {
        let name = |id: Id| self.tree.module(id).name();
        let pairs = self
            .edges
            .iter()
            .flat_map(|(from, to)| to.iter().map(move |(to, path)| (*from, *to, path)));
        let mut lines: Vec<String> = pairs
            .map(|(from, to, path)| format!("{} -> {} ({})", name(from), name(to), path.join("::")))
            .collect();
        lines.sort();
        lines
    }

    fn add(&mut self, from: Id, to: Id, path: &[String]) {
        let from = self.tree.module(from).node;
        let to = self.tree.module(to).node;
        if from != to {
            self.edges
                .entry(from)
                .or_default()
                .entry(to)
                .or_insert_with(|| path.to_vec());
        }
    }

    /// Returns the modules that a mention requires.
    fn mentioned(&self, names: &Names<'_>, id: Id, mention: &Mention) -> BTreeSet<Id> {
        let single = match mention.path.as_slice() {
            [name] => Some(name),
            _ => None,
        };
        if let (true, Some(name)) = (mention.is_macro, single)
            && names.resolve(id, &mention.path).is_none()
        {
            return self.tree.macros.get(name).copied().into_iter().collect();
        }
        // An import that only this module can use is used, or the compiler would warn. A
        // re-exported name counts as used only if no local variable can have this name.
        if let Some(name) = single
            && (mention.is_doubtful || !names.is_passed_on(id, name))
        {
            return BTreeSet::new();
        }
        match names.resolve(id, &mention.path) {
            Some(Target::Item(..)) => names.definers(id, &mention.path),
            _ => BTreeSet::new(),
        }
    }

    /// Returns the dependencies between the children of a module, each with all its descendants.
    fn links_below(&self, parent: Id) -> Links {
        let mut links = Links::new();
        for (from, targets) in &self.edges {
            for (to, path) in targets {
                let (Some(first), Some(second)) = (
                    self.tree.child_above(parent, *from),
                    self.tree.child_above(parent, *to),
                ) else {
                    continue;
                };
                if first != second {
                    links
                        .entry(first)
                        .or_default()
                        .entry(second)
                        .or_insert_with(|| Link {
                            from: *from,
                            to: *to,
                            path: path.clone(),
                        });
                }
            }
        }
        links
    }

    fn circles_of(&self, links: &Links) -> Vec<Circle> {
        let reach: BTreeMap<Id, BTreeSet<Id>> = links
            .keys()
            .map(|id| (*id, reachable(links, *id)))
            .collect();
        let reaches = |from: Id, to: Id| reach.get(&from).is_some_and(|reach| reach.contains(&to));
        let mut circles = Vec::new();
        let mut done = BTreeSet::new();
        for id in links.keys().filter(|id| reaches(**id, **id)) {
            if done.contains(id) {
                continue;
            }
            let members: Vec<Id> = links
                .keys()
                .copied()
                .filter(|to| reaches(*id, *to) && reaches(*to, *id))
                .collect();
            done.extend(members.iter().copied());
            let ways = members
                .iter()
                .filter_map(|member| way_round(links, *member));
            let Some(shortest) = ways.min_by_key(Vec::len) else {
                continue;
            };
            let mut modules: Vec<String> = members
                .iter()
                .map(|member| self.tree.module(*member).name())
                .collect();
            modules.sort();
            circles.push(Circle {
                modules,
                shortest: self.steps(links, &shortest),
            });
        }
        circles
    }

    fn steps(&self, links: &Links, way: &[Id]) -> Vec<Step> {
        let next = way.iter().skip(1).chain(way.first());
        let links = way
            .iter()
            .zip(next)
            .filter_map(|(from, to)| links.get(from)?.get(to));
        let step = |link: &Link| {
            let module = self.tree.module(link.from);
            Step {
                module: module.name(),
                uses: self.tree.module(link.to).name(),
                file: module.file.clone(),
                line: self.line(link.from, &link.path),
                name: link.path.join("::"),
            }
        };
        links.map(step).collect()
    }

    /// Returns the first line of a file that contains the last segment of a path, outside comments.
    fn line(&self, id: Id, path: &[String]) -> Option<usize> {
        let text = fs::read_to_string(&self.tree.module(id).file).ok()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let has = |line: &str, word: &str| line.split(|c| !is_word(c)).any(|found| found == word);
        let code = || {
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim_start().starts_with("//"))
        };
        let whole = path.join("::");
        let last = path.last()?;
        let found = code().find(|(_, line)| line.contains(&whole) && has(line, last));
        found
            .or_else(|| code().find(|(_, line)| has(line, last)))
            .map(|(index, _)| index + 1)
    }
}

/// Returns the nodes that can be reached in one step or more.
fn reachable(links: &Links, from: Id) -> BTreeSet<Id> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        open.extend(
            links
                .get(&id)
                .into_iter()
                .flat_map(BTreeMap::keys)
                .filter(|next| reached.insert(**next)),
        );
    }
    reached
}

/// Returns a shortest path from a node back to itself.
fn way_round(links: &Links, from: Id) -> Option<Vec<Id>> {
    let mut before: BTreeMap<Id, Id> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(id) = open.pop_front() {
        for next in links.get(&id).into_iter().flat_map(BTreeMap::keys) {
            if *next == from {
                let mut way = vec![id];
                while let Some(previous) = way
                    .last()
                    .filter(|last| **last != from)
                    .and_then(|last| before.get(last))
                {
                    way.push(*previous);
                }
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(next) {
                before.insert(*next, id);
                open.push_back(*next);
            }
        }
    }
    None
}
