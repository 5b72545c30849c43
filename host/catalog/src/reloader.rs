//! The only task that loads plugins. It detects changes, loads the changed plugins, and publishes
//! new snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use toolbay_sandbox::PrepareError;

use crate::assemble::{PluginCandidate, assemble};
use crate::catalog::CatalogPublisher;
use crate::folder::{FolderListing, PluginFiles, check_plugin_folder, part_of};
use crate::grant_age::GrantAge;
use crate::load_error::LoadError;
use crate::load_result::{FallbackVersion, LoadOutcome, LoadResult, PreviousVersion};
use crate::loader::PluginLoader;
use crate::plain_files::PlainFiles;
use crate::skill_folder::SkillFolder;
use crate::snapshot::Snapshot;
use crate::watcher::{FolderChanges, FolderWatcher};

/// Number of plugins that are published early at startup, while others are still loading. The
/// instructions of a client that connects then describe these plugins: they have room for about
/// this many lines. The client's lists wait for all plugins.
const FIRST: usize = 64;

/// Time without events in the folder before a change is published, so that a burst of files becomes
/// one change.
const SETTLE: Duration = Duration::from_millis(40);

/// Time to wait for another plugin while plugins are still loading. After it, the loaded plugins
/// are published.
const LINGER: Duration = Duration::from_millis(150);

/// Maximum delay before a change is published, however busy the folder is.
const HOLD: Duration = Duration::from_secs(2);

/// Interval of scans without an event. Some file systems send no events, and the target of a link
/// may change elsewhere.
const LOOK: Duration = Duration::from_secs(2);

/// Time for which an incomplete file may stay unchanged before it is reported as a problem.
const PATIENCE: Duration = Duration::from_secs(2);

/// Delay before the first retry of a failed load. It doubles with each retry.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum delay between two retries.
const LAST_RETRY: Duration = Duration::from_mins(10);

/// Loads the plugins of a folder and owns all state that loading changes.
pub struct FolderReloader {
    loader: Arc<PluginLoader>,
    publisher: CatalogPublisher,
    slots: BTreeMap<String, PluginSlot>,
    loads: JoinSet<(String, u64, LoadResult)>,
    tickets: u64,
    /// Logged problems of items that are hidden because another plugin has an item of the same
    /// name.
    hidden: BTreeSet<String>,
    /// The files that are not plugins, as of the last scan, and those already logged.
    notes: BTreeMap<String, String>,
    noted: BTreeMap<String, String>,
    /// True once the folder has been scanned.
    looked: bool,
    /// True if the folder was missing at the last scan.
    missing: bool,
    /// The reason why the folder could not be read at the last scan.
    unreadable: Option<String>,
    /// The time of the oldest unpublished change.
    changed: Option<Instant>,
    /// Progress of the startup.
    start: StartTasks,
    /// The time of the last event in the folder.
    busy: Instant,
    /// The time at which the last load ended.
    ready: Instant,
}

/// Steps that happen once, after startup.
#[derive(Default)]
struct StartTasks {
    /// True if the first plugins have been published: see [`FIRST`].
    introduced: bool,
    /// True if the record of the components that have been read is saved.
    noted: bool,
}

/// The state of one plugin file.
#[derive(Default)]
struct PluginSlot {
    /// The files at the start of the last load.
    files: Option<PluginFiles>,
    /// The published state of the plugin.
    candidate: PluginCandidate,
    /// The load in progress.
    load: Option<ActiveLoad>,
    /// The next retry of a load that failed for a transient reason.
    retry: Option<ScheduledRetry>,
    /// The time at which the files are loaded again because the grant has settled by then.
    settles: Option<Instant>,
    /// Tracks how long the grant has been unchanged.
    age: Arc<GrantAge>,
    /// True if the server's rules have changed since the last load.
    are_rules_new: bool,
    /// The time since which the file has been incomplete.
    incomplete: Option<Instant>,
    /// True if the file was deleted. The entry stays until the deletion is published, in case the
    /// file comes back at once.
    gone: bool,
    /// True if the first scan found it and it has not been tried yet.
    initial: bool,
}

/// A load in progress.
struct ActiveLoad {
    /// The number of the load.
    ticket: u64,
    /// Aborts the load.
    handle: AbortHandle,
    /// True if only plain files are loaded.
    plain: bool,
}

/// The next retry of a failed load.
#[derive(Clone, Copy, Debug)]
struct ScheduledRetry {
    at: Instant,
    /// The delay before the retry.
    pause: Duration,
}

impl ScheduledRetry {
    /// Returns the first retry, or the one after `before`.
    fn after(before: Option<Self>) -> Self {
        let pause = before.map_or(RETRY, |before| (before.pause * 2).min(LAST_RETRY));
        Self { at: Instant::now() + pause, pause }
    }
}

impl FolderReloader {
    /// Creates a reloader that has not scanned yet.
    pub fn new(loader: PluginLoader, publisher: CatalogPublisher) -> Self {
        let now = Instant::now();
        Self {
            loader: Arc::new(loader),
            publisher,
            slots: BTreeMap::new(),
            loads: JoinSet::new(),
            tickets: 0,
            hidden: BTreeSet::new(),
            notes: BTreeMap::new(),
            noted: BTreeMap::new(),
            looked: false,
            missing: false,
            unreadable: None,
            start: StartTasks::default(),
            changed: None,
            busy: now.checked_sub(SETTLE).unwrap_or(now),
            ready: now,
        }
    }

    /// Loads the existing plugins, then every change, until `stop` is cancelled.
    pub async fn run(mut self, mut watcher: Option<FolderWatcher>, stop: CancellationToken) {
        self.look(&FolderChanges::default(), watcher.as_mut()).await;
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        let loader = Arc::clone(&self.loader);
        loop {
            self.publish_if_due().await;
            let (due, retry) = (self.due(), self.retry());
            tokio::select! {
                () = stop.cancelled() => return,
                changes = next_changes(&mut watcher) => {
                    self.busy = Instant::now();
                    self.look(&changes, watcher.as_mut()).await;
                }
                Some(load) = self.loads.join_next() => match load {
                    Ok((id, ticket, result)) => self.finish(&id, ticket, result),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "loading a plugin failed unexpectedly"),
                },
                () = until(due) => {}
                () = until(retry) => self.try_again(),
                () = loader.rules_changed() => self.apply_rules(),
                _ = looks.tick() => self.look(&FolderChanges::default(), watcher.as_mut()).await,
            }
        }
    }

    /// Scans the folder, starts to load the changed plugins, and updates the watches of folders
    /// with plain files.
    async fn look(&mut self, changes: &FolderChanges, watcher: Option<&mut FolderWatcher>) {
        let (loader, first) = (Arc::clone(&self.loader), !self.looked);
        let scan = move || {
            if first {
                loader.recall();
            }
            loader.scan()
        };
        let found = match tokio::task::spawn_blocking(scan).await {
            Ok(Ok(found)) => {
                if self.unreadable.take().is_some() {
                    tracing::info!("the plugin folder {} can be read again", self.loader.folder().display());
                }
                self.say_whether_it_is_there(found)
            }
            Ok(Err(error)) => {
                let folder = self.loader.folder();
                let why = check_plugin_folder(folder).err().unwrap_or_else(|| error.to_string());
                if self.unreadable.as_ref() != Some(&why) {
                    tracing::warn!("{why}; plugins that are loaded stay in service");
                }
                self.unreadable = Some(why.clone());
                if self.looked {
                    return;
                }
                // Publish an empty folder, so that a caller that waits for the first plugins stops
                // waiting.
                let note = [(folder.display().to_string(), why)];
                FolderListing { notes: note.into(), ..FolderListing::default() }
            }
            Err(error) => {
                tracing::error!(%error, "scanning the plugin folder failed unexpectedly");
                return;
            }
        };
        let FolderListing { plugins: found, notes } = found;
        if notes != self.notes {
            self.notes = notes;
            self.busy = Instant::now();
            self.changed.get_or_insert(self.busy);
        }
        for (id, slot) in &mut self.slots {
            if !found.contains_key(id) && !slot.gone {
                slot.gone = true;
                slot.retry = None;
                slot.settles = None;
                slot.stop();
                // There may have been no event, and the file may be back in a moment, for example
                // if it is being replaced.
                self.busy = Instant::now();
                self.changed.get_or_insert(self.busy);
            }
        }
        // The plugins that an event named, with true if only plain files were named.
        let mut named: HashMap<&str, bool> = HashMap::new();
        for (id, part) in changes.names.iter().filter_map(|name| part_of(name)) {
            *named.entry(id).or_insert(true) &= part.is_plain();
        }
        for (id, files) in found {
            let slot = self.slots.entry(id.clone()).or_default();
            slot.gone = false;
            slot.initial |= !self.looked;
            let named = named.get(id.as_str());
            if slot.files.as_ref() == Some(&files) && named.is_none() {
                slot.complain_if_still_incomplete(&id);
                continue;
            }
            let only_plain = named.is_none_or(|plain| *plain)
                && slot.load.as_ref().is_none_or(|load| load.plain)
                && slot.retry.is_none()
                && slot.files.as_ref().is_some_and(|before| before.same_but_plain(&files));
            slot.files = Some(files);
            if only_plain && slot.candidate.plugin.is_some() {
                self.begin_plain(&id);
            } else {
                slot.retry = None;
                self.begin(&id);
            }
        }
        if let Some(watcher) = watcher {
            watcher.mend();
            let folder = self.loader.folder();
            let slots = self.slots.iter().filter(|(_, slot)| !slot.gone);
            let files = slots.filter_map(|(id, slot)| Some((id, slot.files.as_ref()?)));
            let folders = files.flat_map(|(id, files)| files.folders(folder, id)).collect();
            watcher.watch_within(folders).await;
        }
        if !self.looked {
            self.looked = true;
            // An empty folder also results in a first snapshot, so that a caller that waits for one
            // learns that it is complete.
            self.changed.get_or_insert_with(Instant::now);
        }
    }

    /// Starts to load the plugin. Replaces a load in progress.
    fn begin(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let Some(files) = slot.files.clone() else { return };
        // Only the load at startup may skip reading a component with a known stamp.
        let before = PreviousVersion {
            plugin: slot.candidate.plugin.clone(),
            are_rules_new: slot.are_rules_new,
            is_start: !self.looked,
            age: Arc::clone(&slot.age),
        };
        slot.settles = None;
        let load = Arc::clone(&self.loader).load_files(id.to_owned(), files, before);
        self.start(id, false, load);
    }

    /// Starts to load only the plain files of the plugin. Nothing else changed, so no secret is
    /// fetched and no code is read because of a changed text.
    fn begin_plain(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let (Some(files), Some(plugin)) = (slot.files.clone(), slot.candidate.plugin.clone()) else { return };
        let load = Arc::clone(&self.loader).load_plain_files(files, plugin, slot.candidate.remarks.clone());
        let load = async {
            match load.await {
                Ok(loaded) => LoadResult::Loaded(loaded),
                Err(error) => LoadResult::Failed(error, FallbackVersion::Same),
            }
        };
        self.start(id, true, load);
    }

    /// Spawns a load of the plugin. Replaces a load in progress.
    fn start(&mut self, id: &str, plain: bool, load: impl Future<Output = LoadResult> + Send + 'static) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        slot.stop();
        self.tickets += 1;
        let (id, ticket) = (id.to_owned(), self.tickets);
        let handle = self.loads.spawn(async move { (id, ticket, load.await) });
        slot.load = Some(ActiveLoad { ticket, handle, plain });
    }

    /// Returns the time of the next load that is not caused by a file change.
    fn retry(&self) -> Option<Instant> {
        self.slots.values().filter_map(PluginSlot::again).min()
    }

    /// Starts the loads that are due without a file change.
    fn try_again(&mut self) {
        let now = Instant::now();
        let due = |slot: &PluginSlot| slot.again().is_some_and(|at| at <= now);
        let ids: Vec<String> = self.slots.iter().filter(|(_, slot)| due(slot)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.begin(&id);
        }
    }

    /// Applies the grants of all plugins again because the rules have changed.
    fn apply_rules(&mut self) {
        let present = self.slots.iter_mut().filter(|(_, slot)| !slot.gone);
        let mark = |(id, slot): (&String, &mut PluginSlot)| {
            slot.are_rules_new = true;
            id.clone()
        };
        let ids: Vec<String> = present.map(mark).collect();
        for id in ids {
            self.begin(&id);
        }
    }

    /// Logs once that the folder disappeared or is back. A missing folder counts as empty.
    fn say_whether_it_is_there(&mut self, found: Option<FolderListing>) -> FolderListing {
        let folder = self.loader.folder().display();
        match (&found, self.missing) {
            (None, false) => {
                tracing::warn!(
                    "the plugin folder {folder} no longer exists; what it offers is removed until it returns"
                );
            }
            (Some(_), true) => tracing::info!("the plugin folder {folder} is back"),
            _ => {}
        }
        self.missing = found.is_none();
        found.unwrap_or_default()
    }

    /// Processes the end of a load, unless a newer load has started.
    fn finish(&mut self, id: &str, ticket: u64, result: LoadResult) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let Some(ActiveLoad { plain, .. }) = slot.load.take_if(|load| load.ticket == ticket) else { return };
        let initial = std::mem::take(&mut slot.initial);
        if slot.take_in(id, plain, result) || initial {
            self.ready = Instant::now();
            self.changed.get_or_insert(self.ready);
        }
    }

    /// Returns the time at which the current changes should be published; `None` if there are none.
    fn due(&self) -> Option<Instant> {
        let changed = self.changed?;
        if !self.start.introduced && self.are_first_loaded() {
            return Some(self.busy);
        }
        let quiet = self.busy + SETTLE;
        let due = if self.loads.is_empty() { quiet } else { quiet.max(self.ready + LINGER) };
        Some(due.min(changed + HOLD))
    }

    /// Returns whether the first plugins are loaded or refused.
    fn are_first_loaded(&self) -> bool {
        self.looked && self.slots.len() > FIRST && self.slots.values().take(FIRST).all(|slot| !slot.initial)
    }

    async fn publish_if_due(&mut self) {
        if self.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.changed = None;
        self.slots.retain(|id, slot| {
            if slot.gone {
                tracing::info!(plugin = id, "removed");
            }
            !slot.gone
        });
        let complete = self.slots.values().all(|slot| !slot.initial);
        if complete && !std::mem::replace(&mut self.start.noted, true) {
            let loader = Arc::clone(&self.loader);
            tokio::task::spawn_blocking(move || loader.note());
        }
        self.start.introduced |= complete || self.are_first_loaded();
        let entries: BTreeMap<String, PluginCandidate> =
            self.slots.iter().map(|(id, slot)| (id.clone(), slot.candidate.clone())).collect();
        let (notes, entries) = (self.notes.clone(), Arc::new(entries));
        let work = {
            let entries = Arc::clone(&entries);
            // Assembling is slow enough to block: there may be a thousand plugins with thousands of
            // tools each.
            let introduced = self.start.introduced;
            move || Snapshot { introduced, notes, ..assemble(&entries, complete) }
        };
        let snapshot = match tokio::task::spawn_blocking(work).await {
            Ok(snapshot) => snapshot,
            Err(error) => return tracing::error!(%error, "publishing changes failed unexpectedly"),
        };
        self.say_what_is_hidden(&snapshot, &entries);
        for (name, why) in &self.notes {
            if self.noted.get(name) != Some(why) {
                tracing::info!("not a plugin: {name}: {why}");
            }
        }
        self.noted.clone_from(&self.notes);
        if self.publisher.publish(snapshot) {
            tracing::debug!("the lists changed");
        }
    }

    /// Logs once each item that is hidden because another plugin has an item of the same name.
    fn say_what_is_hidden(&mut self, snapshot: &Snapshot, entries: &BTreeMap<String, PluginCandidate>) {
        let mut hidden = BTreeSet::new();
        for (id, report) in &snapshot.plugins {
            // Problems of the file itself were logged when it was loaded.
            let own = |problem: &String| {
                entries.get(id).is_some_and(|entry| {
                    let files = entry.plugin.iter().flat_map(|plugin| &plugin.files.remarks);
                    entry.problem.iter().chain(&entry.remarks).chain(files).any(|known| known == problem)
                })
            };
            for problem in report.problems.iter().filter(|problem| !own(problem)) {
                if !self.hidden.contains(problem) {
                    tracing::warn!(plugin = id, "{problem}");
                }
                hidden.insert(problem.clone());
            }
        }
        self.hidden = hidden;
    }
}

impl PluginSlot {
    fn stop(&mut self) {
        if let Some(load) = self.load.take() {
            load.handle.abort();
        }
    }

    /// Returns the time at which the files are loaded without a file change.
    fn again(&self) -> Option<Instant> {
        self.retry.map(|retry| retry.at).into_iter().chain(self.settles).min().filter(|_| self.load.is_none())
    }

    /// Records the end of a load. `plain` is true if only plain files were loaded. Returns false if
    /// nothing needs to be published.
    fn take_in(&mut self, id: &str, plain: bool, result: LoadResult) -> bool {
        if !plain && !matches!(result, LoadResult::Failed(LoadError::Gone, _)) {
            self.are_rules_new = false;
        }
        match result {
            LoadResult::Loaded(loaded) => self.replace(id, plain, loaded),
            LoadResult::Pending(narrowed, settles) => {
                self.settles = Some(settles);
                let changes = narrowed.is_some_and(|narrowed| self.narrow(narrowed));
                if changes {
                    tracing::info!(
                        plugin = id,
                        "its files have just changed; what the new grant denies is denied at once"
                    );
                }
                changes
            }
            LoadResult::Failed(error, instead) => {
                let changes = match instead {
                    FallbackVersion::Same => false,
                    FallbackVersion::Narrowed(narrowed) => {
                        let changes = self.narrow(narrowed);
                        if changes {
                            tracing::info!(plugin = id, "the version in service has new terms");
                        }
                        changes
                    }
                    FallbackVersion::Nothing => {
                        self.candidate.remarks.clear();
                        let withdrawn = self.candidate.plugin.take().is_some();
                        if withdrawn {
                            tracing::warn!(
                                plugin = id,
                                "withdrawn: its new terms cannot apply to the version in service"
                            );
                        }
                        withdrawn
                    }
                };
                self.fail(id, error) || changes
            }
        }
    }

    /// Applies other terms to the version in service. Returns false if they are the same.
    fn narrow(&mut self, LoadOutcome { plugin, remarks }: LoadOutcome) -> bool {
        if self.candidate.plugin.as_ref().is_some_and(|old| old.same_as(&plugin)) {
            return false;
        }
        (self.candidate.plugin, self.candidate.remarks) = (Some(plugin), remarks);
        true
    }

    /// Puts a version into service. Returns false if it is the same as before.
    fn replace(&mut self, id: &str, plain: bool, loaded: LoadOutcome) -> bool {
        match loaded {
            LoadOutcome { plugin, .. } if plain => {
                let before = self.candidate.plugin.replace(Arc::clone(&plugin));
                let before = before.map(|before| Arc::clone(&before.files)).unwrap_or_default();
                if before == plugin.files {
                    return false;
                }
                warn_of_files(id, &plugin.files, &before);
                let PlainFiles { prompts, resources, skill, .. } = &*plugin.files;
                tracing::debug!(
                    plugin = id,
                    prompts = prompts.len(),
                    resources = resources.len(),
                    skills = skills(skill.as_deref()),
                    "plain files loaded"
                );
            }
            LoadOutcome { plugin, remarks } => {
                self.incomplete = None;
                self.retry = None;
                let same = self.candidate.plugin.as_ref().is_some_and(|old| old.same_as(&plugin));
                if same && self.candidate.problem.is_none() {
                    return false;
                }
                for remark in &remarks {
                    tracing::warn!(plugin = id, "{remark}");
                }
                let before = self.candidate.plugin.as_ref().map(|before| Arc::clone(&before.files)).unwrap_or_default();
                warn_of_files(id, &plugin.files, &before);
                let (tools, prompts) = (plugin.tools.len(), plugin.prompts.len());
                let resources = plugin.component.contents.resources.len() + plugin.files.resources.len();
                if let Some(digest) = plugin.digest() {
                    tracing::info!(plugin = id, tools, prompts, resources, %digest, "loaded");
                } else {
                    let skills = skills(plugin.files.skill.as_deref());
                    tracing::info!(plugin = id, prompts, resources, skills, "loaded");
                }
                self.candidate = PluginCandidate { plugin: Some(plugin), problem: None, remarks };
            }
        }
        true
    }

    /// Records why the files cannot be loaded. Returns false if nothing needs to be published.
    fn fail(&mut self, id: &str, error: LoadError) -> bool {
        match error {
            // The next scan finds it deleted or changed.
            LoadError::Gone => return false,
            LoadError::Incomplete => {
                tracing::debug!(plugin = id, "incomplete; probably still being written");
                self.incomplete.get_or_insert_with(Instant::now);
                self.candidate.problem = Some(PrepareError::Incomplete.to_string());
            }
            LoadError::Refused(why) => {
                self.incomplete = None;
                self.retry = None;
                self.complain(id, &why);
                self.candidate.problem = Some(why);
            }
            LoadError::Hindered(why) => {
                self.incomplete = None;
                let retry = ScheduledRetry::after(self.retry);
                self.retry = Some(retry);
                let why = format!("{why}; it will be retried");
                if self.candidate.problem.as_ref() == Some(&why) {
                    tracing::debug!(plugin = id, retry_after = ?retry.pause, "still failing: {why}");
                    return false;
                }
                self.complain(id, &why);
                self.candidate.problem = Some(why);
            }
        }
        true
    }

    /// Reports a file that stays incomplete. A file that is still being written is not reported.
    fn complain_if_still_incomplete(&mut self, id: &str) {
        if self.incomplete.is_some_and(|since| since.elapsed() >= PATIENCE) {
            self.incomplete = None;
            self.complain(id, &PrepareError::Incomplete.to_string());
        }
    }

    fn complain(&self, id: &str, why: &str) {
        if self.candidate.plugin.is_some() {
            tracing::warn!(plugin = id, "refused; the previous version stays in service: {why}");
        } else {
            tracing::warn!(plugin = id, "refused: {why}");
        }
    }
}

/// Returns the number of skills in a folder.
fn skills(folder: Option<&SkillFolder>) -> usize {
    folder.map_or(0, |folder| folder.skills.len())
}

/// Logs the warnings about plain files that are new.
fn warn_of_files(id: &str, files: &PlainFiles, before: &PlainFiles) {
    for remark in files.remarks.iter().filter(|remark| !before.remarks.contains(remark)) {
        tracing::warn!(plugin = id, "{remark}");
    }
}

/// Returns the watcher's next changes. Without a watcher, never returns.
async fn next_changes(watcher: &mut Option<FolderWatcher>) -> FolderChanges {
    match watcher {
        Some(watcher) => watcher.changes().await,
        None => pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_between_retries_grows_to_a_maximum() {
        let mut retry = None;
        let pauses: Vec<u64> = (0..12)
            .map(|_| {
                let next = ScheduledRetry::after(retry);
                retry = Some(next);
                next.pause.as_secs()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    }
}
