//! Starts a server with the settings of an embedder or of the command line.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use toolbay_catalog::{
    CatalogPublisher, FolderReloader, LoadPolicy, PluginLoader, WritablePaths, channel,
};
use toolbay_confine::ReachableFiles;
use toolbay_mcp::{RequestStates, ResourceUpdates};
use toolbay_otel::Telemetry;
use toolbay_recording::RecordingFile;
use toolbay_sandbox::Sandbox;
use toolbay_schema::JsonSchema;
use toolbay_secrets::ProgramRunner;

use crate::approval::notifier::{ApprovalNotifier, CommandWorker};
use crate::config::{Config, ConfigError};
use crate::observe::change_counter::ChangeCounter;
use crate::observe::learn::GrantLearner;
use crate::observe::server_observers::EnabledObservers;
use crate::serve::confinement::ServerConfinement;
use crate::serve::grant_log::GrantLog;
use crate::serve::mcp_host::ProtocolState;
use crate::serve::server::Server;
use crate::serve::server_parts::{self, SubscriptionNotifier};

/// Settings with which to start a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerBuilder {
    config: Config,
    watch: bool,
    audit: bool,
    record: bool,
    compiler: Option<PathBuf>,
    telemetry: Option<Telemetry>,
    programs: ProgramRunner,
    notify_worker: Option<Arc<CommandWorker>>,
    reachable_files: Option<Arc<ReachableFiles>>,
    writable_paths: Option<Arc<WritablePaths>>,
}

impl Server {
    /// Returns a builder of a server with this configuration.
    pub fn builder(config: Config) -> ServerBuilder {
        ServerBuilder {
            config,
            watch: true,
            audit: true,
            record: true,
            compiler: None,
            telemetry: None,
            programs: ProgramRunner::default(),
            notify_worker: None,
            reachable_files: None,
            writable_paths: None,
        }
    }
}

impl ServerBuilder {
    /// Sets whether to watch the plugin folder for changes (the default). If not, each file is
    /// loaded once.
    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// Sets whether to keep the audit log that the configuration requests (the default). Only one
    /// server at a time can write to a log.
    #[must_use]
    pub fn audit(self, audit: bool) -> Self {
        Self { audit, ..self }
    }

    /// Sets whether to record calls as the configuration requests (the default). Only one server at
    /// a time can write to a recording.
    #[must_use]
    pub fn record(self, record: bool) -> Self {
        Self { record, ..self }
    }

    /// Sets an existing receiver of the telemetry that `otel` requests. Without it, the server
    /// creates one.
    #[must_use]
    pub fn telemetry(self, telemetry: Option<Telemetry>) -> Self {
        Self { telemetry, ..self }
    }

    /// Sets the path of the `toolbay` program that compiles plugins in a child process. Default:
    /// the running program.
    #[must_use]
    pub fn compiler(self, program: impl Into<PathBuf>) -> Self {
        Self {
            compiler: Some(program.into()),
            ..self
        }
    }

    /// Starts none of the programs that grants name as the sources of secrets. The server can then
    /// show plugins, but calls lack these secrets.
    #[must_use]
    pub(crate) fn without_programs(self) -> Self {
        Self {
            programs: ProgramRunner::disabled(),
            ..self
        }
    }

    /// Sets the confinement of this process: what it can still access, and the worker that starts
    /// programs.
    #[must_use]
    pub(crate) fn with_confinement(self, confinement: &ServerConfinement) -> Self {
        let reachable_files = confinement
            .report()
            .and_then(toolbay_confine::ConfinementReport::reachable_files);
        Self {
            programs: confinement.programs.clone(),
            notify_worker: confinement.notify_worker.clone(),
            reachable_files,
            writable_paths: confinement.writable(),
            ..self
        }
    }

    /// Starts to load plugins. Must be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// The system does not provide the threads or memory, or the audit log or the recording cannot
    /// be written.
    pub fn start(self) -> anyhow::Result<Server> {
        self.start_with(None)
    }

    /// Like [`ServerBuilder::start`], with `recording_file` if it is already open.
    ///
    /// # Errors
    ///
    /// Like those of [`ServerBuilder::start`].
    pub(crate) fn start_with(
        self,
        recording_file: Option<RecordingFile>,
    ) -> anyhow::Result<Server> {
        // Runs on another processor while the engine is created.
        tokio::task::spawn_blocking(JsonSchema::prepare_meta_schema);
        let mut settings = self.config.sandbox_settings()?;
        settings.compiler = self.compiler.clone().or(settings.compiler);
        let state = settings.state.clone();
        let budget_state = state.clone();
        let sandbox = Sandbox::new(settings)?;
        let watcher = if self.watch {
            server_parts::create_watcher(&self.config)
        } else {
            None
        };
        let loader = self.create_loader(sandbox.clone())?;
        let rules = loader.rules();
        let approver = loader.approver();
        let (publisher, catalog) = channel();
        let mut observers = self.open_observers(recording_file)?;
        let updates = ResourceUpdates::default();
        let publisher = add_listeners(publisher, &observers, &updates);
        let protocol = ProtocolState {
            updates,
            request_states: self.open_request_states()?,
        };
        observers.learner = self
            .config
            .learn
            .then(|| GrantLearner::start(self.config.plugins.clone()))
            .transpose()
            .context("failed to start learning")?;
        let stop = CancellationToken::new();
        tokio::spawn(FolderReloader::new(loader, publisher).run(watcher, stop.clone()));
        if let Some(state) = state.filter(|_| self.watch) {
            let opening = server_parts::open_state(state, catalog.clone(), stop.clone());
            tokio::spawn(opening);
        }
        observers.telemetry = self.create_telemetry()?;
        let notifier = if self.watch {
            ApprovalNotifier::start(&self.config, self.notify_worker.as_ref())
        } else {
            None
        };
        let mut server = Server::new(self.config, sandbox, catalog, observers, protocol, stop);
        server.live_rules = Some(rules);
        server.approver = Some(approver);
        if let Some(store) = budget_state {
            server.service().budgets().set_store(store);
        }
        if let Some((waiting, notifier)) = server.service().waiting_approvals().zip(notifier) {
            waiting.set_notifier(notifier);
        }
        server.start_telemetry()?;
        Ok(server)
    }

    fn create_loader(&self, sandbox: Sandbox) -> Result<PluginLoader, ConfigError> {
        let rules = LoadPolicy {
            reachable_files: self.reachable_files.clone(),
            writable_paths: self.writable_paths.clone(),
            ..self.config.load_policy()
        };
        let folder = self.config.plugins.clone();
        let mode = self.config.lock.mode;
        let approvals = self.config.approval_file();
        let loader = PluginLoader::locked(sandbox, rules, folder, mode, approvals)
            .map_err(ConfigError::new)?;
        let loader = loader.with_only_plugin(self.config.only_plugin.clone());
        Ok(loader.with_programs(self.programs.clone()))
    }

    /// Opens the audit log, the data source of the console, the recording and the metrics.
    fn open_observers(
        &self,
        recording_file: Option<RecordingFile>,
    ) -> anyhow::Result<EnabledObservers> {
        let audit = if self.audit {
            server_parts::open_audit_log(&self.config)?
        } else {
            None
        };
        let console = server_parts::create_console_activity(&self.config, self.watch);
        let recording = if self.record {
            server_parts::open_recording(&self.config, recording_file)?
        } else {
            None
        };
        Ok(EnabledObservers {
            audit,
            metrics: server_parts::create_metrics(&self.config),
            console,
            recording,
            ..EnabledObservers::default()
        })
    }

    fn open_request_states(&self) -> anyhow::Result<RequestStates> {
        // A command makes one call and answers no questions later, so it needs no persistent keys.
        if self.watch {
            server_parts::open_request_states(&self.config)
        } else {
            server_parts::ephemeral_request_states()
        }
    }

    /// Returns the receiver of telemetry, and creates it if there is none.
    fn create_telemetry(&self) -> anyhow::Result<Option<Telemetry>> {
        match &self.telemetry {
            // A command makes one call, which needs no telemetry.
            None if self.watch => {
                let settings = self.config.otel.settings()?;
                Ok(settings.map(Telemetry::new))
            }
            telemetry => Ok(telemetry.clone()),
        }
    }
}

/// Adds the listeners that are notified of new snapshots.
fn add_listeners(
    publisher: CatalogPublisher,
    observers: &EnabledObservers,
    updates: &ResourceUpdates,
) -> CatalogPublisher {
    let mut publisher = publisher.with_listener(Arc::<GrantLog>::default());
    if let Some(audit) = &observers.audit {
        publisher = publisher.with_listener(Arc::new(audit.clone()));
    }
    if let Some(metrics) = &observers.metrics {
        publisher = publisher.with_listener(Arc::new(ChangeCounter(Arc::clone(metrics))));
    }
    publisher.with_listener(Arc::new(SubscriptionNotifier(updates.clone())))
}
