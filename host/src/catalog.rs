//! The catalog: what the host offers, as immutable snapshots. Pure data; only the reloader publishes.

mod assemble;
mod header;
mod tool;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::limits::{Amount, Limits, serialize_amounts};
use crate::plugin::grant::Permissions;
use crate::rate::RateLimit;

pub use self::assemble::{Entry, assemble};
pub use self::header::{HeaderKind, ParamHeader};
pub use self::tool::{CheckedDefinition, Tool, check};

/// What the host offers at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Counts publications.
    pub generation: u64,
    /// Counts changes of what `tools/list` returns: a rebuilt plugin with the same tools leaves it as it is.
    pub listing: u64,
    /// Whether every plugin found at start has been tried.
    pub complete: bool,
    /// The tools by the name that clients call.
    pub tools: BTreeMap<String, Arc<Tool>>,
    /// Every plugin file, whether it serves or not, by plugin id.
    pub plugins: BTreeMap<String, PluginReport>,
    /// What else is in the folder and may have been meant to be a plugin: by name, and why it is none.
    pub notes: BTreeMap<String, String>,
}

/// What there is to say about a plugin file.
#[derive(Clone, Debug, Serialize)]
pub struct PluginReport {
    /// Whether it serves.
    pub status: Status,
    /// SHA-256 of the component that serves, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why the file as it is now does not serve, or not wholly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The names its tools are called by.
    pub tools: Vec<String>,
    /// What it was granted, if it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Granted>,
}

/// What a plugin was granted, after clamping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Granted {
    /// What its tools' names begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The budget of a call.
    pub limits: Limits,
    /// What is different for single tools, by the name within the plugin.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Different>,
    /// How often each of its tools may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// What it may reach.
    pub permissions: Permissions,
    /// The names of what it must not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The keys that it is configured with. The values may be nobody else's business.
    pub config: Vec<String>,
}

/// The limits of a tool that are not its plugin's, by their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Different(pub Vec<(&'static str, Amount)>);

impl Serialize for Different {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_amounts(self.0.iter().copied(), serializer)
    }
}

/// Whether a plugin serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its file is being loaded for the first time.
    Loading,
    /// It serves.
    Ready,
    /// An earlier version serves: the file as it is now was refused.
    Stale,
    /// It does not serve.
    Refused,
}

impl Snapshot {
    /// Up to `limit` tools whose names come after `after` and are `visible`, and whether there are more.
    pub fn page(&self, after: Option<&str>, limit: usize, visible: impl Fn(&str) -> bool) -> (Vec<&Arc<Tool>>, bool) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tools = self.tools.range::<str, _>((start, Bound::Unbounded));
        let mut tools = tools.filter(|(name, _)| visible(name)).map(|(_, tool)| tool);
        let page = tools.by_ref().take(limit).collect();
        (page, tools.next().is_some())
    }
}

/// The reading end of the catalog. Reading takes no lock that a reload holds for longer than a pointer's copy.
#[derive(Clone, Debug)]
pub struct Catalog {
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

/// The writing end; there is one, and the reloader has it.
#[derive(Debug)]
pub struct Publisher {
    snapshots: watch::Sender<Arc<Snapshot>>,
}

/// An empty catalog and its publisher.
pub fn channel() -> (Publisher, Catalog) {
    let (sender, receiver) = watch::channel(Arc::default());
    (Publisher { snapshots: sender }, Catalog { snapshots: receiver })
}

impl Catalog {
    /// What is offered now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Waits until a snapshot satisfies `condition`, starting with the present one.
    ///
    /// Returns the last snapshot if the publisher is gone before that.
    pub async fn wait_for(&self, mut condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut snapshots = self.snapshots.clone();
        match snapshots.wait_for(|snapshot| condition(snapshot)).await {
            Ok(snapshot) => Arc::clone(&snapshot),
            Err(_closed) => self.snapshot(),
        }
    }
}

impl Publisher {
    /// Makes `next` what the host offers; its numbers are set here.
    ///
    /// Returns whether what `tools/list` returns has changed.
    pub fn publish(&self, mut next: Snapshot) -> bool {
        let previous = Arc::clone(&self.snapshots.borrow());
        let changed = !tool::same_listing(&previous.tools, &next.tools);
        next.generation = previous.generation + 1;
        next.listing = previous.listing + u64::from(changed);
        self.snapshots.send_replace(Arc::new(next));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(names: &[&str]) -> Snapshot {
        let tools = names.iter().map(|name| ((*name).to_owned(), Arc::new(Tool::for_test(name)))).collect();
        Snapshot { tools, ..Snapshot::default() }
    }

    #[test]
    fn only_a_changed_listing_counts() {
        let (publisher, catalog) = channel();
        assert!(!publisher.publish(snapshot(&[])));
        assert!(publisher.publish(snapshot(&["a"])));
        assert!(!publisher.publish(snapshot(&["a"])), "another plugin with the same tools");
        assert_eq!((catalog.snapshot().generation, catalog.snapshot().listing), (3, 1));
    }

    #[test]
    fn pages_go_by_name_so_that_a_reload_between_them_skips_nothing() {
        let names = |tools: Vec<&Arc<Tool>>| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let before = snapshot(&["b", "d", "f"]);
        let (page, more) = before.page(None, 2, |_| true);
        assert_eq!((names(page), more), (vec!["b".into(), "d".into()], true));
        // The tool that the cursor names is gone, and two came.
        let after = snapshot(&["a", "e", "f"]);
        let (page, more) = after.page(Some("d"), 2, |_| true);
        assert_eq!((names(page), more), (vec!["e".into(), "f".into()], false));
        // What is not to be seen takes no room on a page.
        let (page, more) = after.page(None, 2, |name| name != "e");
        assert_eq!((names(page), more), (vec!["a".into(), "f".into()], false));
    }
}
