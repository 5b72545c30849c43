//! Assembly of a server from its parts, for embedders and the command line.

use std::fmt;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use toolbay_audit::AuditLog;
use toolbay_catalog::{
    Catalog, FolderReloader, FolderWatcher, LiveRules, LoadPolicy, PluginLoader, PublishListener,
    Snapshot, WritablePaths, channel,
};
use toolbay_confine::ReachableFiles;
use toolbay_console::ServerActivity;
use toolbay_mcp::http::AuthPolicy;
use toolbay_mcp::process_stdio::{StdinStream, StdoutStream};
use toolbay_mcp::{ClientCall, ClientShare, RequestStates, ResourceUpdates, http, stdio};
use toolbay_model::text::clean_line;
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallObserver, CallReply, CallRequest, CallResult,
    QuestionKind, QuestionKindSet,
};
use toolbay_otel::{ExporterGuard as Sending, Telemetry};
use toolbay_private::PrivateFolder;
use toolbay_recording::{CallRecorder, RecordingFile};
use toolbay_sandbox::Sandbox;
use toolbay_schema::JsonSchema;
use toolbay_secrets::ProgramRunner;
use toolbay_state::StateStore;

use crate::approval::ruling;
use crate::call::call_recording::{self, RecordingSink};
use crate::call::client_share::ServerShare;
use crate::call::learn::GrantLearner;
use crate::call::service::{CallService, ProtocolState, ServiceObservers};
use crate::config::{Arguments, Config};
use crate::observe::audit_records::{AuditGuard, AuditSink};
use crate::observe::metrics::ServerMetrics;
use crate::observe::publication_counter::ChangeCounter;
use crate::process::stderr;
use crate::serve::confinement::ServerConfinement;
use crate::serve::console_operations::{self, ConsoleOperators};
use crate::serve::metrics_collector::collect_metrics;

/// Caller name of the calls of [`Server::call`], for the log.
const EMBEDDER_NAME: &str = "embedder";

/// Maximum length of the path that `toolbay console` receives, in bytes.
const MAX_PATH_BYTES: usize = 4_000;

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
    reach: Option<Arc<ReachableFiles>>,
    writable: Option<Arc<WritablePaths>>,
}

/// A running server: it loads plugins, serves clients and runs calls. Dropping it stops loading;
/// calls that are running continue.
pub struct Server {
    service: CallService,
    /// The embedder's share, which [`Server::call`] uses.
    client: Arc<dyn ClientShare>,
    config: Config,
    /// Sender of telemetry. Dropped early, while there are still metrics to collect. Dropping it
    /// sends pending data.
    sending: Option<Sending>,
    /// Defaults for plugins whose grants do not set a value; `None` if the server loads no plugins.
    rules: Option<Arc<LiveRules>>,
    /// Access control for HTTP.
    doors: AuthPolicy,
    /// Operators that may open the console; `None` until the console exists.
    operators: Mutex<Option<ConsoleOperators>>,
    _loading: DropGuard,
    /// Dropped last, so that the log is complete.
    _audited: Option<AuditGuard>,
    _recorded: Option<call_recording::RecordingGuard>,
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

    /// Sets the confinement of this process: what it can still access, and the worker that starts
    /// programs.
    #[must_use]
    pub(crate) fn confined_by(self, wall: &ServerConfinement) -> Self {
        let reach = wall
            .confined()
            .and_then(toolbay_confine::ConfinementReport::reachable_files);
        Self {
            programs: wall.programs.clone(),
            reach,
            writable: wall.writable(),
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

    /// Like [`ServerBuilder::start`], with the file to record to if it had to be opened before.
    ///
    /// # Errors
    ///
    /// Like those of [`ServerBuilder::start`].
    pub(crate) fn start_with(self, opened: Option<RecordingFile>) -> anyhow::Result<Server> {
        let Self {
            config,
            watch,
            audit,
            record,
            compiler,
            telemetry,
            programs,
            reach,
            writable,
        } = self;
        // Runs on another processor while the engine is created.
        tokio::task::spawn_blocking(JsonSchema::prepare_meta_schema);
        let mut settings = config.sandbox()?;
        settings.compiler = compiler.or(settings.compiler);
        let state = settings.state.clone();
        let sandbox = Sandbox::new(settings)?;
        let watcher = if watch { create_watcher(&config) } else { None };
        let rules = LoadPolicy {
            reachable_files: reach,
            writable_paths: writable,
            ..config.rules()
        };
        let loader = PluginLoader::new(sandbox.clone(), rules, config.plugins.clone())
            .with_programs(programs);
        let rules = loader.rules();
        let (mut publisher, catalog) = channel();
        let audited = if audit {
            open_audit_log(&config)?
        } else {
            None
        };
        if let Some(audited) = &audited {
            publisher = publisher.with_listener(Arc::new(audited.clone()));
        }
        let shown = create_console_watch(&config, watch);
        let recorded = if record {
            open_recording(&config, opened)?
        } else {
            None
        };
        let metrics = create_metrics(&config);
        if let Some(metrics) = &metrics {
            publisher = publisher.with_listener(Arc::new(ChangeCounter(Arc::clone(metrics))));
        }
        let updates = ResourceUpdates::default();
        publisher = publisher.with_listener(Arc::new(SubscriptionNotifier(updates.clone())));
        // A command makes one call and is never asked questions, so it needs no persistent keys.
        let request_states = if watch {
            open_request_states(&config)?
        } else {
            ephemeral_request_states()?
        };
        let protocol = ProtocolState {
            updates,
            request_states,
        };
        let folder = config.plugins.clone();
        let learner = config
            .learn
            .then(|| GrantLearner::start(folder))
            .transpose()
            .context("failed to start learning")?;
        let stop = CancellationToken::new();
        tokio::spawn(FolderReloader::new(loader, publisher).run(watcher, stop.clone()));
        if let Some(state) = state.filter(|_| watch) {
            tokio::spawn(open_state(state, catalog.clone(), stop.clone()));
        }
        let telemetry = match telemetry {
            // A command makes one call, which needs no telemetry.
            None if watch => config
                .otel
                .settings()
                .map_err(anyhow::Error::msg)?
                .map(Telemetry::new),
            telemetry => telemetry,
        };
        let seen = ServiceObservers {
            learner,
            audited,
            metrics,
            watch: shown,
            recorded,
            telemetry,
        };
        let mut server = Server::new(config, sandbox, catalog, seen, protocol, stop);
        server.rules = Some(rules);
        server.start_telemetry()?;
        Ok(server)
    }
}

/// Notifies subscribed clients of changed resources.
struct SubscriptionNotifier(ResourceUpdates);

impl PublishListener for SubscriptionNotifier {
    fn resources_updated(&self, uris: &[String]) {
        for uri in uris {
            self.0.notify_changed(uri);
        }
    }
}

impl fmt::Debug for SubscriptionNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionNotifier")
            .finish_non_exhaustive()
    }
}

/// Opens the keys that seal request states. They persist across restarts if there is a folder for
/// them.
fn open_request_states(config: &Config) -> anyhow::Result<RequestStates> {
    let key = config
        .server
        .request_state_key()
        .map_err(anyhow::Error::msg)?;
    let opened = config
        .request_key_folder()
        .map(|folder| PrivateFolder::open(&folder, "keys of request states"));
    match (opened, key) {
        (Some(Ok(private)), key) => {
            RequestStates::open(private, key).context("failed to open the keys of request states")
        }
        (why, key) => {
            if let Some(Err(why)) = why {
                tracing::warn!(
                    "open questions of plugins cannot be answered after a restart: {why}"
                );
            }
            match key {
                Some(key) => {
                    RequestStates::in_memory(&key).context("failed to seal the states of requests")
                }
                None => ephemeral_request_states(),
            }
        }
    }
}

/// Creates request states that become invalid when the program ends.
fn ephemeral_request_states() -> anyhow::Result<RequestStates> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).context("the system provides no random bytes")?;
    RequestStates::in_memory(&key).context("failed to seal the states of requests")
}

/// Creates the metrics, if the configuration requests them and they can be read over HTTP or sent.
fn create_metrics(config: &Config) -> Option<Arc<ServerMetrics>> {
    let pushed = config.otel.metrics && config.otel.is_enabled();
    (pushed || config.metrics.enabled && config.http.listen.is_some()).then(Arc::default)
}

/// Creates the data source of the console, if there is one. It receives log lines from this point
/// on.
fn create_console_watch(config: &Config, serves: bool) -> Option<Arc<ServerActivity>> {
    config.console.opener(&config.http).filter(|_| serves)?;
    let watch = Arc::<ServerActivity>::default();
    stderr::set_console(&watch);
    Some(watch)
}

/// Opens the audit log that the configuration requests.
fn open_audit_log(config: &Config) -> anyhow::Result<Option<AuditSink>> {
    let Some(settings) = config.audit.settings() else {
        return Ok(None);
    };
    let audit = AuditLog::open(&settings, config.server.max_entered_calls())
        .context("failed to open the audit log")?;
    Ok(Some(AuditSink::new(
        audit,
        config.audit.arguments == Arguments::Full,
    )))
}

/// Opens the recording that the configuration requests. Its file may be `opened` already.
fn open_recording(
    config: &Config,
    opened: Option<RecordingFile>,
) -> anyhow::Result<Option<RecordingSink>> {
    let Some(settings) = config.record.settings() else {
        return Ok(None);
    };
    let version = env!("CARGO_PKG_VERSION");
    let recorder = match opened {
        Some(opened) => CallRecorder::start(opened, &settings, version)?,
        None => CallRecorder::open(&settings, version)?,
    };
    Ok(Some(RecordingSink::new(
        recorder,
        config.record.tools.clone(),
    )))
}

/// Creates a watcher of the plugin folder. Returns `None` if the system provides none; the folder
/// is then checked every 2 s.
fn create_watcher(config: &Config) -> Option<FolderWatcher> {
    FolderWatcher::new(&config.plugins)
        .inspect_err(|error| tracing::warn!("{error}; checking the folder every 2 s instead"))
        .ok()
}

/// Opens the state as soon as a plugin may use it, so that the log reports a failure early.
async fn open_state(state: Arc<dyn StateStore>, catalog: Catalog, stop: CancellationToken) {
    let granted = |snapshot: &Snapshot| {
        let grants = snapshot
            .plugins
            .values()
            .filter_map(|report| report.grant.as_ref());
        grants
            .into_iter()
            .any(|grant| grant.permissions.state.is_some())
    };
    let open = async {
        catalog.wait_for(granted).await;
        if let Err(error) = state.open().await {
            tracing::error!("{}", error.details());
        }
    };
    stop.run_until_cancelled(open).await;
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
            reach: None,
            writable: None,
        }
    }

    /// Creates a server for a catalog that the caller fills. It makes calls and serves clients, but
    /// loads no plugins and keeps no audit log. `sandbox` must be the one that prepared the plugins
    /// in the catalog.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which runs slow checks of arguments and results.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn with_catalog(
        config: Config,
        sandbox: Sandbox,
        catalog: Catalog,
    ) -> anyhow::Result<Self> {
        let protocol = ProtocolState {
            updates: ResourceUpdates::default(),
            request_states: ephemeral_request_states()?,
        };
        let seen = ServiceObservers {
            metrics: create_metrics(&config),
            ..ServiceObservers::default()
        };
        Ok(Self::new(
            config,
            sandbox,
            catalog,
            seen,
            protocol,
            CancellationToken::new(),
        ))
    }

    /// Creates a server. `loading` is cancelled when the server is dropped.
    fn new(
        config: Config,
        sandbox: Sandbox,
        catalog: Catalog,
        seen: ServiceObservers,
        protocol: ProtocolState,
        loading: CancellationToken,
    ) -> Self {
        let (audited, recorded) = (seen.audited.clone(), seen.recorded.clone());
        let service = CallService::new(catalog, sandbox, seen, protocol, &config);
        let client: Arc<dyn ClientShare> =
            Arc::new(ServerShare::embedder(service.clone(), EMBEDDER_NAME));
        Self {
            service,
            client,
            config,
            sending: None,
            rules: None,
            doors: AuthPolicy::default(),
            operators: Mutex::default(),
            _loading: loading.drop_guard(),
            _audited: audited.map(AuditGuard),
            _recorded: recorded.map(call_recording::RecordingGuard),
        }
    }

    /// Starts to send telemetry, if the configuration requests it.
    fn start_telemetry(&mut self) -> anyhow::Result<()> {
        let Some(telemetry) = self.service.telemetry() else {
            return Ok(());
        };
        let service = self.service.clone();
        let measure = move || collect_metrics(&service, service.traffic()).unwrap_or_default();
        self.sending = Some(telemetry.start(measure).map_err(anyhow::Error::msg)?);
        Ok(())
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.service.catalog().snapshot()
    }

    /// Waits until every plugin that was in the folder at startup has been loaded or refused.
    pub async fn complete(&self) -> Arc<Snapshot> {
        self.service
            .catalog()
            .wait_for(|snapshot| snapshot.complete)
            .await
    }

    /// Waits until a snapshot satisfies `condition`, starting with the current one.
    pub async fn wait_for(&self, condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.service.catalog().wait_for(condition).await
    }

    /// Calls a tool, with the same limits as when it is served. All calls made with this method
    /// count as calls of one client.
    ///
    /// A call that requires a person's approval is refused: see [`Server::call_allowed`]. A result
    /// is returned whole, unless it exceeds both `limits.output` and `results.size`, or
    /// `limits.oversize` is `error`.
    pub async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
    ) -> CallResult {
        self.run_call(
            tool,
            arguments,
            observer,
            QuestionKindSet::default(),
            CallJournal::default(),
        )
        .await
    }

    /// Like [`Server::call`], for a caller that can ask a person. If the operator requires approval
    /// of the call, `allow` receives the question once the arguments are valid, and returns whether
    /// the call is allowed. Otherwise, it is not called.
    pub async fn call_allowed(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        allow: impl AsyncFnOnce(&str) -> bool,
    ) -> CallResult {
        let asks = self
            .snapshot()
            .tools
            .get(&tool)
            .is_some_and(|offer| offer.approval_policy().is_some());
        let answerable = QuestionKindSet::default();
        let answerable = if asks {
            answerable.with(QuestionKind::Form)
        } else {
            answerable
        };
        let (name, values) = (tool.clone(), arguments.clone());
        let mut answer = self
            .run_call(
                name,
                values,
                Arc::clone(&observer),
                answerable,
                CallJournal::default(),
            )
            .await;
        let Ok(CallReply::Questions(interview)) = &mut answer.result else {
            return answer;
        };
        let Some(text) = ruling::question_text(&interview.questions) else {
            // A question of the plugin itself, because its grant changed in the meantime. These are
            // not supported.
            let kinds: Vec<_> = interview
                .questions
                .iter()
                .map(|question| question.kind)
                .collect();
            let failure = CallFailure::MissingCapabilities(QuestionKind::capabilities(&kinds));
            return CallResult {
                result: Err(failure),
                ..answer
            };
        };
        let mut journal = std::mem::take(&mut interview.journal);
        journal.answers.insert(
            ruling::APPROVAL_KEY.to_owned(),
            ruling::answer_json(allow(&text).await),
        );
        self.run_call(
            tool,
            arguments,
            observer,
            QuestionKindSet::default(),
            journal,
        )
        .await
    }

    async fn run_call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        answerable: QuestionKindSet,
        journal: CallJournal,
    ) -> CallResult {
        let client = Arc::clone(&self.client);
        let call = ClientCall::without_client(
            CallRequest::Tool {
                name: tool,
                arguments,
            },
            answerable,
            journal,
        );
        let running = self.service.sandbox().spawn(async move {
            match client.enqueue(call.request.target()) {
                Ok(mut place) => place.call(call, observer).await,
                Err(rejection) => CallResult {
                    result: Err(CallFailure::Rejected(rejection)),
                    usage: None,
                },
            }
        });
        running.await.unwrap_or_else(|error| {
            let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
            CallResult {
                result: Err(CallFailure::Call(error)),
                usage: None,
            }
        })
    }

    /// Serves one client on a pair of streams until it closes them or `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// Reading failed. A client that stops reading is not an error.
    pub async fn serve_stdio(
        &self,
        reader: StdinStream,
        writer: StdoutStream,
        stop: CancellationToken,
    ) -> std::io::Result<()> {
        let ended = stdio::serve(Arc::new(self.service.clone()), reader, writer, stop).await;
        self.service.tasks().stop().await;
        self.service.tally().log();
        self.service.finish_learning();
        ended
    }

    /// Serves the console on this socket, in addition to a client on a pair of streams, until the
    /// returned handle is dropped. The console is created when it is first opened, and shows events
    /// from then on.
    ///
    /// # Errors
    ///
    /// The listener cannot be used.
    pub(crate) fn serve_console(
        self: &Arc<Self>,
        listener: UnixListener,
    ) -> io::Result<AbortOnDropHandle<()>> {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let server = Arc::downgrade(self);
        let folder = std::path::absolute(&self.config.plugins)
            .unwrap_or_else(|_| self.config.plugins.clone());
        let about = clean_line(&folder.to_string_lossy(), MAX_PATH_BYTES);
        let open = move || {
            let server = server.upgrade()?;
            let watch = Arc::new(ServerActivity::on_first_use());
            stderr::set_console(&watch);
            server.service.set_watch(&watch);
            tokio::spawn(Arc::clone(&watch).drain_calls());
            Some(console_operations::stdio_console(
                &server.service,
                &watch,
                &server.config,
            ))
        };
        Ok(AbortOnDropHandle::new(tokio::spawn(
            toolbay_console::serve(listener, about, open),
        )))
    }

    /// Serves HTTP clients until `stop` is cancelled, and then for at most `server.grace_period`.
    ///
    /// # Errors
    ///
    /// A configured file cannot be read, or the listener has no address.
    pub async fn serve_http(
        &self,
        listener: impl Into<http::SocketListener>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let listener = listener.into();
        let host = Arc::new(self.service.clone());
        let tls = self.config.http.open_tls().map_err(anyhow::Error::msg)?;
        let mut options = self.config.http.options(self.config.metrics.enabled, tls);
        let address = listener.address()?;
        let _taking_in = self.service.watch().map(|watch| {
            if let Some((pages, operators)) =
                console_operations::http_console(&self.service, watch, &self.config, &address)
            {
                options.pages = Some(pages);
                *self
                    .operators
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(operators);
            }
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(watch).drain_calls()))
        });
        let ended = http::serve(host, options, listener, &self.doors, stop).await;
        self.service.tasks().stop().await;
        self.service.tally().log();
        self.service.finish_learning();
        ended.context("failed to serve HTTP")
    }

    /// Applies the settings of `config` that can change while a server runs: to new requests and
    /// calls, and to all plugins.
    pub(crate) fn apply_config(&self, config: &Config) {
        self.service
            .set_instructions(config.server.instructions.clone());
        self.service
            .admission()
            .set_client_rate(config.caller_rate_limit);
        self.doors.update(config.http.access_policy());
        if let Some(operators) = &*self
            .operators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            operators.update(config);
        }
        if let Some(live) = &self.rules {
            let LoadPolicy {
                limits,
                rate_limit,
                require_approval,
                ..
            } = config.rules();
            live.update_defaults(&limits, rate_limit, require_approval);
        }
    }

    /// Warns about patterns of tokens, scopes and recordings that match nothing, once every plugin
    /// has been loaded or refused.
    pub(crate) async fn warn_unmatched_patterns(&self) {
        let snapshot = self.complete().await;
        let http = &self.config.http;
        let tokens = http.tokens.iter().flat_map(|token| {
            let patterns = token.tools.iter().flatten();
            patterns.map(move |pattern| (format!("http.tokens {:?}", token.name), pattern))
        });
        let scopes =
            http.oauth
                .iter()
                .flat_map(|oauth| &oauth.tools)
                .flat_map(|(scope, patterns)| {
                    patterns
                        .iter()
                        .map(move |pattern| (format!("http.oauth.tools.{scope}"), pattern))
                });
        let recorded = self
            .config
            .record
            .tools
            .iter()
            .flatten()
            .map(|pattern| ("record.tools".to_owned(), pattern));
        for (place, pattern) in tokens.chain(scopes).chain(recorded) {
            let names = snapshot.tools.keys().chain(snapshot.prompts.keys());
            let uris = snapshot
                .resources
                .keys()
                .chain(snapshot.templates.keys())
                .chain(snapshot.files.keys());
            if !names.chain(uris).any(|name| pattern.matches(name)) {
                tracing::warn!(
                    "{place}: no tool, prompt or resource matches {:?}",
                    pattern.to_string()
                );
            }
        }
    }

    /// Returns the service, for commands that use its parts.
    pub(crate) fn service(&self) -> &CallService {
        &self.service
    }
}
