//! The only task that loads plugins. It detects changes, loads the changed plugins, and publishes
//! new snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::assemble::{PluginCandidate, assemble};
use crate::catalog::CatalogPublisher;
use crate::grant_age::GrantAge;
use crate::load_error::LoadError;
use crate::load_result::{FallbackVersion, LoadCause, LoadOutcome, LoadResult, PreviousVersion};
use crate::loader::PluginLoader;
use crate::plain_files::PlainFiles;
use crate::plugin_folder::{FolderListing, PluginFiles, check_plugin_folder, parse_file_name};
use crate::skill_folder::SkillFolder;
use crate::snapshot::Snapshot;
use crate::watcher::{FolderChanges, FolderWatcher};

/// Number of plugins that are published early at startup, while others are still loading. The
/// instructions of a client that connects then describe these plugins: they have room for about
/// this many lines. The client's lists wait for all plugins.
const FIRST_PLUGINS: usize = 64;

/// Time without events in the folder before a change is published, so that a burst of files becomes
/// one change.
const QUIET_PERIOD: Duration = Duration::from_millis(40);

/// Time to wait for another plugin while plugins are still loading. After it, the loaded plugins
/// are published.
const NEXT_LOAD_WAIT: Duration = Duration::from_millis(150);

/// Maximum delay before a change is published, however busy the folder is.
const MAX_PUBLISH_DELAY: Duration = Duration::from_secs(2);

/// Interval of scans without an event. Some file systems send no events, and the target of a link
/// may change elsewhere.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// Time for which an incomplete file may stay unchanged before it is reported as a problem.
const INCOMPLETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay before the first retry of a failed load. It doubles with each retry.
const INITIAL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum delay between two retries.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);

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
    start: StartProgress,
    /// True if the first load does not wait for components that took too long at the last start:
    /// they are retried in the background, and what they offer is published later.
    postpones_slow: bool,
    /// The time of the last event in the folder.
    busy: Instant,
    /// The time at which the last load ended.
    ready: Instant,
}

/// Steps that happen once, after startup.
#[derive(Default)]
struct StartProgress {
    /// True if the first plugins have been published: see [`FIRST_PLUGINS`].
    first_published: bool,
    /// True if the record of the components that have been read is saved.
    saved_known_files: bool,
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
    settles_at: Option<Instant>,
    /// Tracks how long the grant has been unchanged.
    age: Arc<GrantAge>,
    /// True if the server's rules have changed since the last load.
    are_rules_new: bool,
    /// The time since which the file has been incomplete.
    incomplete_since: Option<Instant>,
    /// True if the file was deleted. The entry stays until the deletion is published, in case the
    /// file comes back at once.
    is_deleted: bool,
    /// True if the first scan found it and it has not been tried yet.
    is_untried: bool,
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
        let pause = before.map_or(INITIAL_RETRY_DELAY, |before| {
            (before.pause * 2).min(MAX_RETRY_DELAY)
        });
        Self {
            at: Instant::now() + pause,
            pause,
        }
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
            start: StartProgress::default(),
            postpones_slow: false,
            changed: None,
            busy: now.checked_sub(QUIET_PERIOD).unwrap_or(now),
            ready: now,
        }
    }

    /// Loads the existing plugins, then every change, until `abort_load` is cancelled.
    pub async fn run(mut self, mut watcher: Option<FolderWatcher>, stop: CancellationToken) {
        // Without a watcher, this may be a command that needs every plugin once.
        self.postpones_slow = watcher.is_some();
        self.scan(&FolderChanges::default(), watcher.as_mut()).await;
        let mut looks = interval(SCAN_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        let loader = Arc::clone(&self.loader);
        loop {
            self.publish_if_due().await;
            let (due, retry) = (self.publish_time(), self.next_retry());
            tokio::select! {
                () = stop.cancelled() => return,
                changes = next_changes(&mut watcher) => {
                    self.busy = Instant::now();
                    self.scan(&changes, watcher.as_mut()).await;
                }
                Some(load) = self.loads.join_next() => match load {
                    Ok((id, ticket, result)) => self.finish_load(&id, ticket, result),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "loading a plugin failed unexpectedly"),
                },
                () = sleep_until_due(due) => {}
                () = sleep_until_due(retry) => self.start_due_retries(),
                () = loader.wait_for_rules_change() => self.apply_rules(),
                _ = looks.tick() => self.scan(&FolderChanges::default(), watcher.as_mut()).await,
            }
        }
    }

    /// Scans the folder, starts to load the changed plugins, and updates the watches of folders
    /// with plain files.
    async fn scan(&mut self, changes: &FolderChanges, watcher: Option<&mut FolderWatcher>) {
        let (loader, first) = (Arc::clone(&self.loader), !self.looked);
        let scan = move || {
            if first {
                loader.load_known_files();
            }
            loader.scan()
        };
        let found = match tokio::task::spawn_blocking(scan).await {
            Ok(Ok(found)) => {
                if self.unreadable.take().is_some() {
                    tracing::info!(
                        "the plugin folder {} can be read again",
                        self.loader.folder().display()
                    );
                }
                self.log_folder_presence(found)
            }
            Ok(Err(error)) => {
                let folder = self.loader.folder();
                let why = check_plugin_folder(folder)
                    .err()
                    .unwrap_or_else(|| error.to_string());
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
                FolderListing {
                    notes: note.into(),
                    ..FolderListing::default()
                }
            }
            Err(error) => {
                tracing::error!(%error, "scanning the plugin folder failed unexpectedly");
                return;
            }
        };
        let FolderListing {
            plugins: found,
            notes,
        } = found;
        if notes != self.notes {
            self.notes = notes;
            self.busy = Instant::now();
            self.changed.get_or_insert(self.busy);
        }
        for (id, slot) in &mut self.slots {
            if !found.contains_key(id) && !slot.is_deleted {
                slot.is_deleted = true;
                slot.retry = None;
                slot.settles_at = None;
                slot.abort_load();
                // There may have been no event, and the file may be back in a moment, for example
                // if it is being replaced.
                self.busy = Instant::now();
                self.changed.get_or_insert(self.busy);
            }
        }
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
            slot.is_untried |= !self.looked;
            let named = named.get(id.as_str());
            if slot.files.as_ref() == Some(&files) && named.is_none() {
                slot.warn_if_still_incomplete(&id);
                continue;
            }
            let only_plain = named.is_none_or(|plain| *plain)
                && slot.load.as_ref().is_none_or(|load| load.plain)
                && slot.retry.is_none()
                && slot
                    .files
                    .as_ref()
                    .is_some_and(|before| before.is_same_except_plain_files(&files));
            slot.files = Some(files);
            if only_plain && slot.candidate.plugin.is_some() {
                self.start_plain_load(&id);
            } else {
                slot.retry = None;
                self.start_load(&id);
            }
        }
        if let Some(watcher) = watcher {
            watcher.rewatch_if_replaced();
            let folder = self.loader.folder();
            let slots = self.slots.iter().filter(|(_, slot)| !slot.is_deleted);
            let files = slots.filter_map(|(id, slot)| Some((id, slot.files.as_ref()?)));
            let folders = files
                .flat_map(|(id, files)| files.plain_folders(folder, id))
                .collect();
            watcher.watch_subfolders(folders).await;
        }
        if !self.looked {
            self.looked = true;
            // An empty folder also results in a first snapshot, so that a caller that waits for one
            // learns that it is complete.
            self.changed.get_or_insert_with(Instant::now);
        }
    }

    /// Starts to load the plugin. Replaces a load in progress.
    fn start_load(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let Some(files) = slot.files.clone() else {
            return;
        };
        let cause = match slot.retry {
            // Only the load at startup may skip reading a component with a known stamp.
            _ if !self.looked => LoadCause::Start {
                postpones_slow: self.postpones_slow,
            },
            Some(_) => LoadCause::Retry,
            None => LoadCause::Change,
        };
        let before = PreviousVersion {
            plugin: slot.candidate.plugin.clone(),
            are_rules_new: slot.are_rules_new,
            cause,
            grant_age: Arc::clone(&slot.age),
        };
        slot.settles_at = None;
        let load = Arc::clone(&self.loader).load_files(id.to_owned(), files, before);
        self.spawn_load(id, false, load);
    }

    /// Starts to load only the plain files of the plugin. Nothing else changed, so no secret is
    /// fetched and no code is read because of a changed text.
    fn start_plain_load(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let (Some(files), Some(plugin)) = (slot.files.clone(), slot.candidate.plugin.clone())
        else {
            return;
        };
        let load = Arc::clone(&self.loader).load_plain_files(
            files,
            plugin,
            slot.candidate.remarks.clone(),
        );
        let load = async {
            match load.await {
                Ok(loaded) => LoadResult::Loaded(loaded),
                Err(error) => LoadResult::Failed(error, FallbackVersion::Unchanged),
            }
        };
        self.spawn_load(id, true, load);
    }

    /// Spawns a load of the plugin. Replaces a load in progress.
    fn spawn_load(
        &mut self,
        id: &str,
        plain: bool,
        load: impl Future<Output = LoadResult> + Send + 'static,
    ) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        slot.abort_load();
        self.tickets += 1;
        let (id, ticket) = (id.to_owned(), self.tickets);
        let handle = self.loads.spawn(async move { (id, ticket, load.await) });
        slot.load = Some(ActiveLoad {
            ticket,
            handle,
            plain,
        });
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
        let present = self.slots.iter_mut().filter(|(_, slot)| !slot.is_deleted);
        let mark = |(id, slot): (&String, &mut PluginSlot)| {
            slot.are_rules_new = true;
            id.clone()
        };
        let ids: Vec<String> = present.map(mark).collect();
        for id in ids {
            self.start_load(&id);
        }
    }

    /// Logs once that the folder disappeared or is back. A missing folder counts as empty.
    fn log_folder_presence(&mut self, found: Option<FolderListing>) -> FolderListing {
        let folder = self.loader.folder().display();
        match (&found, self.missing) {
            (None, false) => {
                tracing::warn!(
                    "the plugin folder {folder} no longer exists; its plugins are removed until it returns"
                );
            }
            (Some(_), true) => tracing::info!("the plugin folder {folder} is back"),
            _ => {}
        }
        self.missing = found.is_none();
        found.unwrap_or_default()
    }

    /// Processes the end of a load, unless a newer load has started.
    fn finish_load(&mut self, id: &str, ticket: u64, result: LoadResult) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let Some(ActiveLoad { plain, .. }) = slot.load.take_if(|load| load.ticket == ticket) else {
            return;
        };
        let initial = std::mem::take(&mut slot.is_untried);
        if slot.apply_result(id, plain, result) || initial {
            self.ready = Instant::now();
            self.changed.get_or_insert(self.ready);
        }
    }

    /// Returns the time at which the current changes should be published; `None` if there are none.
    fn publish_time(&self) -> Option<Instant> {
        let changed = self.changed?;
        if !self.start.first_published && self.are_first_loaded() {
            return Some(self.busy);
        }
        let quiet = self.busy + QUIET_PERIOD;
        let due = if self.loads.is_empty() {
            quiet
        } else {
            quiet.max(self.ready + NEXT_LOAD_WAIT)
        };
        Some(due.min(changed + MAX_PUBLISH_DELAY))
    }

    /// Returns whether the first plugins are loaded or refused.
    fn are_first_loaded(&self) -> bool {
        self.looked
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
        self.changed = None;
        self.slots.retain(|id, slot| {
            if slot.is_deleted {
                tracing::info!(plugin = id, "removed");
            }
            !slot.is_deleted
        });
        let complete = self.slots.values().all(|slot| !slot.is_untried);
        if complete && !std::mem::replace(&mut self.start.saved_known_files, true) {
            let loader = Arc::clone(&self.loader);
            tokio::task::spawn_blocking(move || loader.save_known_files());
        }
        self.start.first_published |= complete || self.are_first_loaded();
        let entries: BTreeMap<String, PluginCandidate> = self
            .slots
            .iter()
            .map(|(id, slot)| (id.clone(), slot.candidate.clone()))
            .collect();
        let (notes, entries) = (self.notes.clone(), Arc::new(entries));
        let work = {
            let entries = Arc::clone(&entries);
            // Assembling is slow enough to block: there may be a thousand plugins with thousands of
            // tools each.
            let introduced = self.start.first_published;
            move || Snapshot {
                first_loaded: introduced,
                notes,
                ..assemble(&entries, complete)
            }
        };
        let snapshot = match tokio::task::spawn_blocking(work).await {
            Ok(snapshot) => snapshot,
            Err(error) => return tracing::error!(%error, "publishing changes failed unexpectedly"),
        };
        self.log_name_conflicts(&snapshot, &entries);
        for (name, why) in &self.notes {
            if self.noted.get(name) != Some(why) {
                tracing::warn!("not a plugin: {name}: {why}");
            }
        }
        self.noted.clone_from(&self.notes);
        if self.publisher.publish(snapshot) {
            tracing::debug!("the lists changed");
        }
    }

    /// Logs once each item that is hidden because another plugin has an item of the same name.
    fn log_name_conflicts(
        &mut self,
        snapshot: &Snapshot,
        entries: &BTreeMap<String, PluginCandidate>,
    ) {
        let mut hidden = BTreeSet::new();
        for (id, report) in &snapshot.plugins {
            // Problems of the file itself were logged when it was loaded.
            let own = |problem: &String| {
                entries.get(id).is_some_and(|entry| {
                    let files = entry.plugin.iter().flat_map(|plugin| &plugin.files.remarks);
                    entry
                        .problem
                        .iter()
                        .chain(&entry.remarks)
                        .chain(files)
                        .any(|known| known == problem)
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
    fn abort_load(&mut self) {
        if let Some(load) = self.load.take() {
            load.handle.abort();
        }
    }

    /// Returns the time at which the files are loaded without a file change.
    fn next_retry(&self) -> Option<Instant> {
        self.retry
            .map(|retry| retry.at)
            .into_iter()
            .chain(self.settles_at)
            .min()
            .filter(|_| self.load.is_none())
    }

    /// Records the end of a load. `plain` is true if only plain files were loaded. Returns false if
    /// nothing needs to be published.
    fn apply_result(&mut self, id: &str, plain: bool, result: LoadResult) -> bool {
        if !plain && !matches!(result, LoadResult::Failed(LoadError::Gone, _)) {
            self.are_rules_new = false;
        }
        match result {
            LoadResult::Loaded(loaded) => self.put_into_service(id, plain, loaded),
            LoadResult::Pending(narrowed, settles) => {
                self.settles_at = Some(settles);
                let changes = narrowed.is_some_and(|narrowed| self.apply_terms(narrowed));
                if changes {
                    tracing::info!(
                        plugin = id,
                        "its files have changed recently; permissions that the new grant denies are denied at once"
                    );
                }
                changes
            }
            LoadResult::Failed(error, instead) => {
                let changes = match instead {
                    FallbackVersion::Unchanged => false,
                    FallbackVersion::Narrowed(narrowed) => {
                        let changes = self.apply_terms(narrowed);
                        if changes {
                            tracing::info!(plugin = id, "the version in service has new terms");
                        }
                        changes
                    }
                    FallbackVersion::NoVersion => {
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
                self.record_failure(id, error) || changes
            }
        }
    }

    /// Applies other terms to the version in service. Returns false if they are the same.
    fn apply_terms(&mut self, LoadOutcome { plugin, remarks }: LoadOutcome) -> bool {
        if self
            .candidate
            .plugin
            .as_ref()
            .is_some_and(|old| old.behaves_like(&plugin))
        {
            return false;
        }
        (self.candidate.plugin, self.candidate.remarks) = (Some(plugin), remarks);
        true
    }

    /// Puts a version into service. Returns false if it is the same as before.
    fn put_into_service(&mut self, id: &str, plain: bool, loaded: LoadOutcome) -> bool {
        match loaded {
            LoadOutcome { plugin, .. } if plain => {
                let before = self.candidate.plugin.replace(Arc::clone(&plugin));
                let before = before
                    .map(|before| Arc::clone(&before.files))
                    .unwrap_or_default();
                if before == plugin.files {
                    return false;
                }
                log_new_file_warnings(id, &plugin.files, &before);
                let PlainFiles {
                    prompts,
                    resources,
                    skill,
                    ..
                } = &*plugin.files;
                tracing::debug!(
                    plugin = id,
                    prompts = prompts.len(),
                    resources = resources.len(),
                    skills = count_skills(skill.as_deref()),
                    "plain files loaded"
                );
            }
            LoadOutcome { plugin, remarks } => {
                self.incomplete_since = None;
                self.retry = None;
                let same = self
                    .candidate
                    .plugin
                    .as_ref()
                    .is_some_and(|old| old.behaves_like(&plugin));
                if same && self.candidate.problem.is_none() {
                    return false;
                }
                for remark in &remarks {
                    tracing::warn!(plugin = id, "{remark}");
                }
                let before = self
                    .candidate
                    .plugin
                    .as_ref()
                    .map(|before| Arc::clone(&before.files))
                    .unwrap_or_default();
                log_new_file_warnings(id, &plugin.files, &before);
                let (tools, prompts) = (plugin.tools.len(), plugin.prompts.len());
                let resources =
                    plugin.component.contents.resources.len() + plugin.files.resources.len();
                if let Some(digest) = plugin.digest() {
                    tracing::info!(plugin = id, tools, prompts, resources, %digest, "loaded");
                } else {
                    let skills = count_skills(plugin.files.skill.as_deref());
                    tracing::info!(plugin = id, prompts, resources, skills, "loaded");
                }
                self.candidate = PluginCandidate {
                    plugin: Some(plugin),
                    problem: None,
                    remarks,
                };
            }
        }
        true
    }

    /// Records why the files cannot be loaded. Returns false if nothing needs to be published.
    fn record_failure(&mut self, id: &str, error: LoadError) -> bool {
        match error {
            // The next scan finds it deleted or changed.
            LoadError::Gone => return false,
            LoadError::Incomplete(why) => {
                tracing::debug!(
                    plugin = id,
                    "incomplete; probably still being written: {why}"
                );
                self.incomplete_since.get_or_insert_with(Instant::now);
                self.candidate.problem = Some(why);
            }
            LoadError::Refused(why) => {
                self.incomplete_since = None;
                self.retry = None;
                self.log_refusal(id, &why);
                self.candidate.problem = Some(why);
            }
            LoadError::Transient(why) => {
                self.incomplete_since = None;
                let retry = ScheduledRetry::after(self.retry);
                self.retry = Some(retry);
                let why = format!("{why}; it is retried automatically");
                if self.candidate.problem.as_ref() == Some(&why) {
                    tracing::debug!(plugin = id, retry_after = ?retry.pause, "still failing: {why}");
                    return false;
                }
                self.log_refusal(id, &why);
                self.candidate.problem = Some(why);
            }
        }
        true
    }

    /// Reports a file that stays incomplete. A file that is still being written is not reported.
    fn warn_if_still_incomplete(&mut self, id: &str) {
        if self
            .incomplete_since
            .is_some_and(|since| since.elapsed() >= INCOMPLETE_TIMEOUT)
        {
            self.incomplete_since = None;
            let why = self.candidate.problem.clone().unwrap_or_default();
            self.log_refusal(id, &why);
        }
    }

    fn log_refusal(&self, id: &str, why: &str) {
        if self.candidate.plugin.is_some() {
            tracing::warn!(
                plugin = id,
                "refused; the previous version stays in service: {why}"
            );
        } else {
            tracing::warn!(plugin = id, "refused: {why}");
        }
    }
}

/// Returns the number of skills in a folder.
fn count_skills(folder: Option<&SkillFolder>) -> usize {
    folder.map_or(0, |folder| folder.skills.len())
}

/// Logs the warnings about plain files that are new.
fn log_new_file_warnings(id: &str, files: &PlainFiles, before: &PlainFiles) {
    for remark in files
        .remarks
        .iter()
        .filter(|remark| !before.remarks.contains(remark))
    {
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

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
