//! Everything that the server offers at one moment, as immutable data.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use toolbay_model::Tool;

use crate::fingerprint::{Fingerprint, digest};
use crate::offer::Offer;
use crate::report::PluginReport;

/// Everything that the server offers at one moment. Immutable once published.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Number of the snapshot; increases by one with each publication.
    pub generation: u64,
    /// Number of the tool list; increases only if the result of `tools/list` changes.
    pub listing: u64,
    /// Whether every plugin that existed at startup has been loaded or refused.
    pub complete: bool,
    /// The tools, by the name that clients call.
    pub tools: BTreeMap<String, Arc<Offer>>,
    /// The status of every plugin file, by plugin id.
    pub plugins: BTreeMap<String, PluginReport>,
    /// Files that are not plugins but were probably meant to be: by name, with the reason.
    pub notes: BTreeMap<String, String>,
}

impl Snapshot {
    /// Up to `limit` tools whose names come after `after` and are `visible`, and whether there are more.
    pub fn page(&self, after: Option<&str>, limit: usize, visible: impl Fn(&str) -> bool) -> (Vec<Arc<Tool>>, bool) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tools = self.tools.range::<str, _>((start, Bound::Unbounded));
        let mut tools = tools.filter(|(name, _)| visible(name)).map(|(_, offer)| Arc::clone(&offer.tool));
        let page = tools.by_ref().take(limit).collect();
        (page, tools.next().is_some())
    }

    /// A digest of the tools that are `visible`: if two are equal, so are the results of `tools/list`.
    pub fn digest(&self, visible: impl Fn(&str) -> bool) -> u64 {
        digest(self.listed().filter(|(name, _)| visible(name)))
    }

    /// Whether `tools/list` returns the same for both.
    pub(crate) fn lists_the_same(&self, other: &Self) -> bool {
        self.listed().eq(other.listed())
    }

    /// The names of all tools, with what their definitions differ by.
    fn listed(&self) -> impl Iterator<Item = (&str, Fingerprint)> {
        self.tools.iter().map(|(name, offer)| (name.as_str(), offer.definition.fingerprint))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::grant::Shown;
    use crate::offer::tests::offer;

    /// A snapshot with tools of these names.
    pub(crate) fn snapshot(names: &[&str]) -> Snapshot {
        let tools = names.iter().map(|name| ((*name).to_owned(), Arc::new(offer(name)))).collect();
        Snapshot { tools, ..Snapshot::default() }
    }

    #[test]
    fn the_digest_is_of_what_is_visible() {
        let (before, after) = (snapshot(&["a", "b"]), snapshot(&["a", "b", "c"]));
        assert_ne!(before.digest(|_| true), after.digest(|_| true));
        assert_eq!(before.digest(|name| name < "c"), after.digest(|name| name < "c"));
        assert_eq!(before.digest(|_| true), snapshot(&["a", "b"]).digest(|_| true), "loaded again");
        // The same names, and another description.
        let mut changed = snapshot(&["a"]);
        let shown = Shown { description: Some("Does it.".into()), ..Shown::default() };
        let offer = Arc::clone(&changed.tools["a"]);
        let definition = Arc::new(offer.definition.shown_as(&shown));
        let offer = Offer { tool: Arc::clone(&definition.tool), definition, plugin: Arc::clone(&offer.plugin) };
        changed.tools.insert("a".into(), Arc::new(offer));
        assert_ne!(changed.digest(|_| true), snapshot(&["a"]).digest(|_| true));
    }

    #[test]
    fn pages_go_by_name_so_that_a_reload_between_them_skips_nothing() {
        let names = |tools: Vec<Arc<Tool>>| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let before = snapshot(&["b", "d", "f"]);
        let (page, more) = before.page(None, 2, |_| true);
        assert_eq!((names(page), more), (vec!["b".into(), "d".into()], true));
        // The tool that the cursor names was removed, and two were added.
        let after = snapshot(&["a", "e", "f"]);
        let (page, more) = after.page(Some("d"), 2, |_| true);
        assert_eq!((names(page), more), (vec!["e".into(), "f".into()], false));
        // Tools that are not visible take no space on a page.
        let (page, more) = after.page(None, 2, |name| name != "e");
        assert_eq!((names(page), more), (vec!["a".into(), "f".into()], false));
    }
}
