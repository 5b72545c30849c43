//! The loader of plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use toolbay_lock::LOCK_FILE_NAME;
use toolbay_sandbox::Sandbox;
use toolbay_secrets::ProgramRunner;

use crate::component::blocking_work::run_blocking;
use crate::component::load_environment::LoadEnvironment;
use crate::folder::approval_file::ApprovalFile;
use crate::folder::folder_lock::{FolderLock, LockChange, LockMode};
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::{self, FolderListing, PluginFiles};
use crate::folder::version_approver::VersionApprover;
use crate::load::load_result::{FallbackVersion, LoadBaseline, LoadCause, LoadOutcome, LoadResult};
use crate::load::load_stages::LoadStages;
use crate::load::plugin_reader::LoadContext;
use crate::load::secret_fetcher::SecretFetcher;
use crate::load::version_fallback::fall_back;
use crate::load::version_update::VersionUpdate;
use crate::rules::load_policy::{LiveRules, LoadPolicy};
use crate::rules::mount_policy::GuardedPath;
use crate::version::plugin::Plugin;

/// Loader of plugins. Several plugins can load concurrently.
pub struct PluginLoader {
    stages: LoadStages,
    /// The only plugin to load. `None`: all plugins of the folder.
    only_plugin: Option<String>,
}

impl PluginLoader {
    /// Creates a loader for the plugins in `plugin_folder`.
    pub fn new(sandbox: Sandbox, rules: LoadPolicy, folder: PathBuf) -> Self {
        Self::with_folder_lock(sandbox, rules, folder, FolderLock::off())
    }

    /// Like [`PluginLoader::new`], with the lock file of the folder, if there is one, and the versions
    /// that operators approved in the console. Blocks.
    ///
    /// # Errors
    ///
    /// The lock file is invalid or cannot be read, or another file was probably meant to be it. The
    /// message begins with the name of the file.
    pub fn locked(
        sandbox: Sandbox,
        rules: LoadPolicy,
        folder: PathBuf,
        mode: LockMode,
        approvals: Option<ApprovalFile>,
    ) -> Result<Self, String> {
        let lock = FolderLock::open(&folder, mode, approvals)?;
        Ok(Self::with_folder_lock(sandbox, rules, folder, lock))
    }

    fn with_folder_lock(
        sandbox: Sandbox,
        mut rules: LoadPolicy,
        folder: PathBuf,
        lock: FolderLock,
    ) -> Self {
        rules
            .guarded_paths
            .insert(0, GuardedPath::plugin_folder(&folder));
        let environment = LoadEnvironment {
            sandbox,
            rules: Arc::new(LiveRules {
                rules: ArcSwap::from_pointee(rules),
                changed: Notify::new(),
            }),
            lock: Arc::new(lock),
            folder: folder.into(),
        };
        Self {
            stages: LoadStages::new(environment),
            only_plugin: None,
        }
    }

    /// Loads only the plugin with this id, if it is set. The other plugins of the folder do not
    /// exist for this loader.
    #[must_use]
    pub fn with_only_plugin(self, only_plugin: Option<String>) -> Self {
        Self {
            only_plugin,
            ..self
        }
    }

    /// Uses `programs` to start programs that print secrets.
    #[must_use]
    pub fn with_programs(mut self, programs: ProgramRunner) -> Self {
        self.stages.secrets = SecretFetcher::new(self.stages.environment.clone(), programs);
        self
    }

    /// Returns the rules, which can be replaced while plugins are loaded.
    pub fn rules(&self) -> Arc<LiveRules> {
        Arc::clone(&self.stages.environment.rules)
    }

    /// Returns what approves held versions for an operator of the console.
    pub fn approver(&self) -> VersionApprover {
        let environment = &self.stages.environment;
        VersionApprover::new(
            Arc::clone(&environment.lock),
            Arc::clone(&environment.folder),
        )
    }

    /// Waits until an operator has approved a version.
    pub(crate) async fn wait_for_approval(&self) {
        self.stages.environment.lock.wait_for_approval().await;
    }

    /// Waits until the rules have been replaced.
    pub(crate) async fn wait_for_rules_change(&self) {
        self.stages.environment.rules.changed.notified().await;
    }

    /// Returns the plugin folder.
    pub fn folder(&self) -> &Path {
        &self.stages.environment.folder
    }

    /// Reads the lock file again if it changed. Returns the plugins to compare again. Blocks.
    pub(crate) fn refresh_lock(&self) -> Option<LockChange> {
        self.stages.environment.lock.refresh(self.folder())
    }

    /// Loads the record of the components that the previous server read. Blocks.
    pub(crate) fn load_known_files(&self) {
        self.stages.sources.load_known_files();
    }

    /// Ends the server start: saves the record of the components that were read, for the next
    /// start. Blocks.
    pub(crate) fn save_known_files(&self) {
        self.stages.sources.save_known_files();
    }

    /// Scans the plugin folder. Returns `None` if it does not exist. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn scan(&self) -> std::io::Result<Option<FolderListing>> {
        let rules = self.stages.environment.rules.current();
        let mut listing = plugin_folder::scan(
            self.folder(),
            &rules.description_limits,
            self.only_plugin.as_deref(),
        )?;
        if let Some(listing) = &mut listing
            && let Some(problem) = self.stages.environment.lock.problem()
        {
            let problem = format!("{problem}; the pins that were read before stay in force");
            listing.notes.insert(LOCK_FILE_NAME.to_owned(), problem);
        }
        Ok(listing)
    }

    /// Loads the plugin `id` from its current files, regardless of the version in service.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub async fn load(self: Arc<Self>, id: String) -> Result<LoadOutcome, LoadError> {
        let loader = Arc::clone(&self);
        let found = run_blocking("scanning the plugin folder", move || {
            loader.scan().map_err(|error| {
                LoadError::Transient(format!("scanning the plugin folder failed: {error}"))
            })
        })
        .await?;
        let files = found
            .and_then(|mut found| found.plugins.remove(&id))
            .ok_or(LoadError::Gone)?;
        self.stages
            .load_first(&id, &files, LoadContext::default(), &Arc::default())
            .await
    }

    /// Loads the plugin `id` from these files. A grant gives rights only after it has been
    /// unchanged for [`SETTLE_TIME`](crate::folder::grant_age::SETTLE_TIME). A first version waits for
    /// that. Until then, a version in service has only the rights that both the new grant and the
    /// grant in force allow.
    pub(crate) async fn load_files(
        self: Arc<Self>,
        id: String,
        files: PluginFiles,
        before: LoadBaseline,
    ) -> LoadResult {
        let stages = &self.stages;
        let Some(previous) = &before.plugin else {
            let is_start = matches!(before.cause, LoadCause::Start { .. });
            let occasion = LoadContext {
                known: is_start.then(|| files.clone()),
                cause: before.cause,
            };
            return match stages
                .load_first(&id, &files, occasion, &before.grant_age)
                .await
            {
                Ok(loaded) => LoadResult::Loaded(loaded),
                Err(error @ LoadError::Held(_)) => {
                    let approved = stages.load_approved(&id, &files, &before.grant_age).await;
                    let version =
                        approved.map_or(FallbackVersion::Unchanged, FallbackVersion::Approved);
                    LoadResult::Failed(error, version)
                }
                Err(error) => LoadResult::Failed(error, FallbackVersion::Unchanged),
            };
        };
        let update = VersionUpdate {
            stages,
            id: &id,
            files: &files,
            before: &before,
            previous,
        };
        let result = match update.load().await {
            Ok(result) => result,
            Err(failure) => fall_back(update, failure).await,
        };
        match result {
            LoadResult::Failed(error @ LoadError::Held(_), FallbackVersion::NoVersion) => {
                let approved = stages.load_approved(&id, &files, &before.grant_age).await;
                let version =
                    approved.map_or(FallbackVersion::NoVersion, FallbackVersion::Approved);
                LoadResult::Failed(error, version)
            }
            result => result,
        }
    }

    /// Loads the plain files of a plugin whose other files are unchanged. `remarks` are the
    /// warnings about those other files.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub(crate) async fn load_plain_files(
        self: Arc<Self>,
        files: PluginFiles,
        previous: Arc<Plugin>,
        remarks: Vec<String>,
    ) -> Result<LoadOutcome, LoadError> {
        self.stages
            .plain_files
            .reload(files, previous, remarks)
            .await
    }
}
