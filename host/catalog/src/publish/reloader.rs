//! The only task that loads plugins. It detects changes, loads the changed plugins, and publishes
//! new snapshots.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use toolbay_lock::LOCK_FILE_NAME;

use crate::folder::folder_lock::LockChange;
use crate::folder::plugin_folder::{FolderListing, PluginFiles, parse_file_name};
use crate::folder::watcher::{FolderChanges, FolderWatcher};
use crate::load::load_result::LoadCause;
use crate::load::plugin_loader::PluginLoader;
use crate::publish::assemble::{PluginState, assemble};
use crate::publish::catalog::CatalogPublisher;
use crate::publish::folder_log::FolderLog;
use crate::publish::load_tasks::{FinishedLoad, LoadTasks};
use crate::publish::plugin_slot::{LoadScope, PluginSlot, RulesChange};
use crate::publish::publish_schedule::PublishSchedule;
use crate::publish::snapshot::Snapshot;
use crate::publish::snapshot_log::SnapshotLog;

/// Number of plugins that are published early at startup, while others are still loading. The
/// instructions sent to a client that connects at that time describe these plugins; the
/// instructions have room for about this many lines. The client's lists wait for all plugins.
const FIRST_PLUGINS: usize = 64;

/// Interval of scans without an event. Some file systems send no events, and the target of a link
/// may change elsewhere.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// Loads the plugins of a folder and owns all state that loading changes.
pub struct FolderReloader {
    loader: Arc<PluginLoader>,
    publisher: CatalogPublisher,
    slots: BTreeMap<String, PluginSlot>,
    loads: LoadTasks,
    schedule: PublishSchedule,
    /// The files that are not plugins, as of the last scan.
    notes: BTreeMap<String, String>,
    folder_log: FolderLog,
    snapshot_log: SnapshotLog,
    /// Progress of the startup.
    start: StartProgress,
    /// True if the first load does not wait for components that took too long at the last start:
    /// they are retried in the background, and what they offer is published later.
    postpones_slow: bool,
}

/// Steps that happen once, after startup.
#[derive(Default)]
struct StartProgress {
    /// True once the folder has been scanned.
    scanned: bool,
    /// True if the first plugins have been published: see [`FIRST_PLUGINS`].
    first_published: bool,
    /// True if the record of the components that have been read is saved.
    saved_known_files: bool,
}

impl FolderReloader {
    /// Creates a reloader that has not scanned yet.
    pub fn new(loader: PluginLoader, publisher: CatalogPublisher) -> Self {
        let loader = Arc::new(loader);
        Self {
            loads: LoadTasks::new(Arc::clone(&loader)),
            loader,
            publisher,
            slots: BTreeMap::new(),
            schedule: PublishSchedule::new(),
            notes: BTreeMap::new(),
            folder_log: FolderLog::default(),
            snapshot_log: SnapshotLog::default(),
            start: StartProgress::default(),
            postpones_slow: false,
        }
    }

    /// Loads the existing plugins, then every change, until `stop` is cancelled.
    pub async fn run(mut self, mut watcher: Option<FolderWatcher>, stop: CancellationToken) {
        // Without a watcher, this may be a command that needs every plugin once.
        self.postpones_slow = watcher.is_some();
        self.scan(&FolderChanges::default(), watcher.as_mut()).await;
        let mut scans = interval(SCAN_INTERVAL);
        scans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        scans.reset();
        let loader = Arc::clone(&self.loader);
        loop {
            self.publish_if_due().await;
            let due = self.publish_time();
            let retry = self.next_retry();
            tokio::select! {
                () = stop.cancelled() => return,
                changes = next_changes(&mut watcher) => {
                    self.schedule.record_event();
                    self.scan(&changes, watcher.as_mut()).await;
                }
                Some(load) = self.loads.join_next() => match load {
                    Ok(load) => self.finish_load(load),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "loading a plugin failed unexpectedly"),
                },
                () = sleep_until_due(due) => {}
                () = sleep_until_due(retry) => self.start_due_retries(),
                () = loader.wait_for_rules_change() => self.apply_rules(),
                () = loader.wait_for_approval() => {
                    self.scan(&FolderChanges::default(), watcher.as_mut()).await;
                }
                _ = scans.tick() => self.scan(&FolderChanges::default(), watcher.as_mut()).await,
            }
        }
    }

    /// Scans the folder, starts to load the changed plugins, and updates the watches of folders
    /// with plain files.
    async fn scan(&mut self, changes: &FolderChanges, watcher: Option<&mut FolderWatcher>) {
        let Some((FolderListing { plugins, notes }, lock_change)) = self.list_folder().await else {
            return;
        };
        if notes != self.notes {
            self.notes = notes;
            self.schedule.record_folder_change();
        }
        for (id, slot) in &mut self.slots {
            if !plugins.contains_key(id) && slot.delete() {
                // There may have been no event, and the file may be back in a moment, for example
                // if it is being replaced.
                self.schedule.record_folder_change();
            }
        }
        self.start_changed(plugins, changes);
        if let Some(change) = lock_change {
            self.compare_with_lock(&change);
        }
        if let Some(watcher) = watcher {
            self.update_watches(watcher).await;
        }
        if !self.start.scanned {
            self.start.scanned = true;
            // An empty folder also results in a first snapshot, so that a caller that waits for one
            // learns that it is complete.
            self.schedule.request_snapshot();
        }
    }

    /// Lists the folder, and logs what changed about the folder itself. Returns `None` if it cannot
    /// be read, and the plugins that are loaded stay in service.
    async fn list_folder(&mut self) -> Option<(FolderListing, Option<LockChange>)> {
        let loader = Arc::clone(&self.loader);
        let is_first = !self.start.scanned;
        let scan = move || {
            if is_first {
                loader.load_known_files();
            }
            let lock_change = loader.refresh_lock();
            (loader.scan(), lock_change)
        };
        let folder = self.loader.folder();
        match tokio::task::spawn_blocking(scan).await {
            Ok((Ok(found), change)) => Some((self.folder_log.log_listing(folder, found), change)),
            Ok((Err(error), change)) => {
                let why = self.folder_log.log_unreadable(folder, &error);
                if !is_first {
                    return None;
                }
                // Publish an empty folder, so that a caller that waits for the first plugins stops
                // waiting.
                let note = [(folder.display().to_string(), why)];
                let listing = FolderListing {
                    notes: note.into(),
                    ..FolderListing::default()
                };
                Some((listing, change))
            }
            Err(error) => {
                tracing::error!(%error, "scanning the plugin folder failed unexpectedly");
                None
            }
        }
    }

    /// Starts to load the plugins that changed.
    fn start_changed(&mut self, found: BTreeMap<String, PluginFiles>, changes: &FolderChanges) {
        // The plugins that an event named, with true if only plain files were named.
        let mut named: HashMap<&str, bool> = HashMap::new();
        for (id, part) in changes
            .names
            .iter()
            .filter_map(|name| parse_file_name(name))
        {
            *named.entry(id).or_insert(true) &= part.is_plain();
        }
        for (id, files) in found {
            let slot = self.slots.entry(id.clone()).or_default();
            slot.is_deleted = false;
            slot.is_untried |= !self.start.scanned;
            match slot.update_files(&id, files, named.get(id.as_str()).copied()) {
                Some(LoadScope::PlainFiles) => self.loads.start_plain_files(&id, slot),
                Some(LoadScope::Everything) => self.start_load(&id),
                None => {}
            }
        }
    }

    /// Watches the folders with plain files.
    async fn update_watches(&self, watcher: &mut FolderWatcher) {
        watcher.rewatch_if_replaced();
        let folder = self.loader.folder();
        let slots = self.slots.iter().filter(|(_, slot)| !slot.is_deleted);
        let files = slots.filter_map(|(id, slot)| Some((id, slot.files.as_ref()?)));
        let folders = files
            .flat_map(|(id, files)| files.plain_folders(folder, id))
            .collect();
        watcher.watch_subfolders(folders).await;
    }

    /// Starts to load the plugin. Replaces a load in progress.
    fn start_load(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let cause = match slot.retry {
            // Only the load at startup may skip reading a component with a known stamp.
            _ if !self.start.scanned => LoadCause::Start {
                postpones_slow: self.postpones_slow,
            },
            Some(_) => LoadCause::Retry,
            None => LoadCause::Change,
        };
        self.loads.start(id, slot, cause);
    }

    /// Returns the time of the next load that is not caused by a file change.
    fn next_retry(&self) -> Option<Instant> {
        self.slots.values().filter_map(PluginSlot::next_retry).min()
    }

    /// Starts the loads that are due without a file change.
    fn start_due_retries(&mut self) {
        let now = Instant::now();
        let due = |slot: &PluginSlot| slot.next_retry().is_some_and(|at| at <= now);
        let ids: Vec<String> = self
            .slots
            .iter()
            .filter(|(_, slot)| due(slot))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            self.start_load(&id);
        }
    }

    /// Applies the grants of all plugins again because the rules have changed.
    fn apply_rules(&mut self) {
        let mut ids = Vec::new();
        for (id, slot) in &mut self.slots {
            if !slot.is_deleted {
                slot.rules_change = slot.rules_change.max(RulesChange::Changed);
                ids.push(id.clone());
            }
        }
        for id in ids {
            self.start_load(&id);
        }
    }

    /// Compares plugins again because their pins or their approvals have changed.
    fn compare_with_lock(&mut self, change: &LockChange) {
        if change.has_new_pins {
            tracing::info!("{LOCK_FILE_NAME} was read");
        }
        let mut ids = Vec::new();
        for (id, slot) in &mut self.slots {
            if !slot.is_deleted && (change.is_first || change.plugins.contains(id)) {
                let rules_change = if change.voided.contains(id) {
                    RulesChange::ApprovalVoid
                } else {
                    RulesChange::Changed
                };
                slot.rules_change = slot.rules_change.max(rules_change);
                ids.push(id.clone());
            }
        }
        for id in ids {
            self.start_load(&id);
        }
    }

    /// Processes the end of a load.
    fn finish_load(&mut self, load: FinishedLoad) {
        let FinishedLoad { id, ticket, result } = load;
        if let Some(slot) = self.slots.get_mut(&id)
            && slot.finish_load(&id, ticket, result)
        {
            self.schedule.record_load();
        }
    }

    /// Returns the time at which the current changes should be published; `None` if there are none.
    fn publish_time(&self) -> Option<Instant> {
        let are_first_ready = !self.start.first_published && self.are_first_loaded();
        self.schedule
            .publish_time(!self.loads.is_empty(), are_first_ready)
    }

    /// Returns whether the first plugins are loaded or refused.
    fn are_first_loaded(&self) -> bool {
        self.start.scanned
            && self.slots.len() > FIRST_PLUGINS
            && self
                .slots
                .values()
                .take(FIRST_PLUGINS)
                .all(|slot| !slot.is_untried)
    }

    async fn publish_if_due(&mut self) {
        if self.publish_time().is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.schedule.clear();
        self.slots.retain(|id, slot| {
            if slot.is_deleted {
                tracing::info!(plugin = id, "removed");
            }
            !slot.is_deleted
        });
        let is_complete = self.slots.values().all(|slot| !slot.is_untried);
        if is_complete && !std::mem::replace(&mut self.start.saved_known_files, true) {
            let loader = Arc::clone(&self.loader);
            tokio::task::spawn_blocking(move || loader.save_known_files());
        }
        self.start.first_published |= is_complete || self.are_first_loaded();
        let candidates: BTreeMap<String, PluginState> = self
            .slots
            .iter()
            .map(|(id, slot)| (id.clone(), slot.state.clone()))
            .collect();
        let candidates = Arc::new(candidates);
        let Some(snapshot) = self.assemble(&candidates, is_complete).await else {
            return;
        };
        self.snapshot_log.log_problems(&snapshot, &candidates);
        if self.publisher.publish(snapshot) {
            tracing::debug!("the lists changed");
        }
    }

    /// Assembles a snapshot on a blocking thread: there may be a thousand plugins with thousands of
    /// tools each.
    async fn assemble(
        &self,
        candidates: &Arc<BTreeMap<String, PluginState>>,
        is_complete: bool,
    ) -> Option<Snapshot> {
        let notes = self.notes.clone();
        let candidates = Arc::clone(candidates);
        let first_loaded = self.start.first_published;
        let work = move || Snapshot {
            first_loaded,
            notes,
            ..assemble(&candidates, is_complete)
        };
        tokio::task::spawn_blocking(work)
            .await
            .inspect_err(|error| tracing::error!(%error, "publishing changes failed unexpectedly"))
            .ok()
    }
}

/// Returns the watcher's next changes. Without a watcher, never returns.
async fn next_changes(watcher: &mut Option<FolderWatcher>) -> FolderChanges {
    match watcher {
        Some(watcher) => watcher.changes().await,
        None => pending().await,
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
