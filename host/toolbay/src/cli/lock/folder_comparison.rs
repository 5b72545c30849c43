//! Compares the plugins of a folder with its lock file.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use toolbay_catalog::{LockMode, Snapshot, pin_plugin, read_lock_file};
use toolbay_lock::{LockFile, PluginPin, ToolOwners, VersionDifference, WarningSigns};
use toolbay_model::text::clean_line;

use crate::cli::list::unknown_plugin_message;
use crate::cli::load_progress::{inspection_server, wait_until_loaded};
use crate::config::Config;

/// Maximum length of the reason why a plugin is not loaded, in bytes.
const MAX_REASON_BYTES: usize = 1_000;

/// The plugins of a folder compared with its lock file.
pub(crate) struct FolderComparison {
    /// The lock file; `None` if there is none.
    pub(crate) file: Option<LockFile>,
    /// The current versions, by plugin ID.
    pub(crate) versions: BTreeMap<String, PluginPin>,
    /// The reasons why plugins are not loaded, by ID.
    pub(crate) refused: BTreeMap<String, String>,
    /// The tools of all plugins.
    tools: BTreeMap<String, ToolOwners>,
}

/// Difference of one plugin from the lock file.
pub(crate) struct PluginChange {
    pub(crate) id: String,
    pub(crate) kind: ChangeKind,
}

/// Kind of a difference from the lock file.
pub(crate) enum ChangeKind {
    /// The version differs, or the plugin is not in the file.
    Changed(Box<VersionDifference>, WarningSigns),
    /// The plugin is in the file, and its files are missing.
    Missing,
}

impl FolderComparison {
    /// Loads the plugins of the folder without their lock, and compares them with the lock file.
    ///
    /// # Errors
    ///
    /// The lock file is invalid, or a file cannot be read.
    pub(crate) async fn load(config: &Config) -> anyhow::Result<Self> {
        let file = read_lock_file(&config.plugins).map_err(anyhow::Error::msg)?;
        let mut config = config.clone();
        config.lock.mode = LockMode::Off;
        config.locked = false;
        let server = inspection_server(config).start()?;
        let snapshot = wait_until_loaded(&server).await;
        tokio::task::spawn_blocking(move || Self::from_snapshot(file, &snapshot))
            .await
            .context("comparing the plugins failed unexpectedly")?
    }

    fn from_snapshot(file: Option<LockFile>, snapshot: &Arc<Snapshot>) -> anyhow::Result<Self> {
        let mut versions = BTreeMap::new();
        let mut refused = BTreeMap::new();
        for (id, report) in &snapshot.plugins {
            if let Some(plugin) = &report.version {
                let pin = pin_plugin(plugin)
                    .map_err(|error| anyhow::Error::msg(error.reason().to_owned()))?;
                versions.insert(id.clone(), pin);
            } else {
                let reason = report
                    .problems
                    .first()
                    .map_or("it is not loaded", |why| why);
                refused.insert(id.clone(), clean_line(reason, MAX_REASON_BYTES));
            }
        }
        let mut tools: BTreeMap<String, ToolOwners> = BTreeMap::new();
        for (name, offer) in &snapshot.tools {
            let id = &offer.plugin.id;
            tools
                .entry(id.clone())
                .or_default()
                .insert(name.clone(), id.clone());
        }
        Ok(Self {
            file,
            versions,
            refused,
            tools,
        })
    }

    /// Checks that each plugin is in the folder or in the lock file.
    ///
    /// # Errors
    ///
    /// One is not.
    pub(crate) fn check_names(&self, ids: &[String]) -> anyhow::Result<()> {
        let pinned = self.file.iter().flat_map(|file| file.plugins.keys());
        let known: Vec<&str> = self
            .versions
            .keys()
            .chain(self.refused.keys())
            .chain(pinned)
            .map(String::as_str)
            .collect();
        match ids.iter().find(|id| !known.contains(&id.as_str())) {
            Some(id) => bail!(unknown_plugin_message(id, known.into_iter())),
            None => Ok(()),
        }
    }

    /// Returns the plugins that differ from the lock file, of those in `ids`, or of all if it is
    /// empty. A plugin that is not loaded has no difference.
    pub(crate) fn changes(&self, ids: &[String]) -> Vec<PluginChange> {
        let nothing = LockFile::default();
        let file = self.file.as_ref().unwrap_or(&nothing);
        let is_selected = |id: &String| ids.is_empty() || ids.contains(id);
        let changed = self.versions.iter().filter_map(|(id, version)| {
            let difference = VersionDifference::new(file.plugins.get(id), version);
            if difference.is_empty() {
                return None;
            }
            let signs = difference.warning_signs(&self.tools_of_others(id));
            let kind = ChangeKind::Changed(Box::new(difference), signs);
            Some(PluginChange {
                id: id.clone(),
                kind,
            })
        });
        let missing = file
            .plugins
            .keys()
            .filter(|id| !self.versions.contains_key(*id) && !self.refused.contains_key(*id))
            .map(|id| PluginChange {
                id: id.clone(),
                kind: ChangeKind::Missing,
            });
        let mut all: Vec<PluginChange> = changed
            .chain(missing)
            .filter(|change| is_selected(&change.id))
            .collect();
        all.sort_by(|one, two| one.id.cmp(&two.id));
        all
    }

    fn tools_of_others(&self, id: &str) -> ToolOwners {
        self.tools
            .iter()
            .filter(|(owner, _)| owner.as_str() != id)
            .flat_map(|(_, tools)| tools.clone())
            .collect()
    }
}

impl PluginChange {
    /// Returns the difference as text for people.
    pub(crate) fn render(&self) -> String {
        match &self.kind {
            ChangeKind::Changed(difference, signs) => {
                let heading = if difference.is_new {
                    "not in toolbay.lock"
                } else {
                    "differs from toolbay.lock"
                };
                let body = difference.render(signs);
                let body: String = body.lines().flat_map(|line| ["  ", line, "\n"]).collect();
                format!("{}: {heading}\n{body}", self.id)
            }
            ChangeKind::Missing => {
                format!("{}: in toolbay.lock, but its files are missing\n", self.id)
            }
        }
    }
}
