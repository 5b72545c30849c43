//! Assembly of a server from its parts, for embedders and the command line.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use toolbay_catalog::{Catalog, LiveRules, LoadPolicy, Snapshot, VersionApprover};
use toolbay_console::{RunningCallTable, ServerActivity};
use toolbay_mcp::http::SharedAccess;
use toolbay_mcp::process_stdio::{StdinStream, StdoutStream};
use toolbay_mcp::{McpServer, ResourceUpdates, http, stdio};
use toolbay_model::text::clean_line;
use toolbay_model::{CallObserver, CallResult, QuestionKind};
use toolbay_otel::ExporterGuard;
use toolbay_sandbox::Sandbox;

use crate::call::service::CallService;
use crate::config::Config;
use crate::observe::call_recording;
use crate::observe::server_audit::AuditGuard;
use crate::observe::server_observers::EnabledObservers;
use crate::process::stderr;
use crate::serve::console_opening::{self, HistoryKeeper};
use crate::serve::console_operators::ConsoleOperators;
use crate::serve::embedder_calls::{CallAnswers, EmbedderCalls};
use crate::serve::mcp_host::{ProtocolState, ServerHost};
use crate::serve::metrics_collector::collect_metrics;
use crate::serve::pattern_warnings;
use crate::serve::running_call_control::RunningCallControl;
use crate::serve::server_parts;

/// Maximum length of the path that `toolbay console` receives, in bytes.
const MAX_PATH_BYTES: usize = 4_000;

/// A running server: it loads plugins, serves clients and runs calls. Dropping it stops loading;
/// calls that are running continue.
pub struct Server {
    service: CallService,
    /// The service, as the protocol accesses it.
    host: Arc<ServerHost>,
    /// The protocol's side of the server, for all transports.
    protocol: Arc<McpServer>,
    /// Calls of the embedder, which [`Server::call`] makes.
    embedder: EmbedderCalls,
    config: Config,
    /// Sender of telemetry. Dropped early, while there are still metrics to collect. Dropping it
    /// sends pending data.
    exporter: Option<ExporterGuard>,
    /// Defaults for plugins whose grants do not set a value; `None` if the server loads no plugins.
    pub(super) live_rules: Option<Arc<LiveRules>>,
    /// Approves held versions; `None` if the server loads no plugins.
    pub(super) approver: Option<VersionApprover>,
    /// Access control for HTTP.
    access: SharedAccess,
    /// Operators that may open the console; `None` until the console exists.
    operators: Mutex<Option<ConsoleOperators>>,
    _stop_loading: DropGuard,
    /// Dropped last, so that the log is complete.
    _audit_guard: Option<AuditGuard>,
    _recording_guard: Option<call_recording::RecordingGuard>,
}

impl Server {
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
            request_states: server_parts::ephemeral_request_states()?,
        };
        let observers = EnabledObservers {
            metrics: server_parts::create_metrics(&config),
            ..EnabledObservers::default()
        };
        Ok(Self::new(
            config,
            sandbox,
            catalog,
            observers,
            protocol,
            CancellationToken::new(),
        ))
    }

    /// Creates a server. `loading` is cancelled when the server is dropped.
    pub(super) fn new(
        config: Config,
        sandbox: Sandbox,
        catalog: Catalog,
        observers: EnabledObservers,
        protocol: ProtocolState,
        loading: CancellationToken,
    ) -> Self {
        let audit = observers.audit.clone();
        let recording = observers.recording.clone();
        let service = CallService::new(catalog, sandbox, observers, &config);
        let host = Arc::new(ServerHost::new(service.clone(), &config));
        Self {
            embedder: EmbedderCalls::new(&service),
            protocol: host.create_protocol(protocol, &config),
            host,
            service,
            config,
            exporter: None,
            live_rules: None,
            approver: None,
            access: SharedAccess::default(),
            operators: Mutex::default(),
            _stop_loading: loading.drop_guard(),
            _audit_guard: audit.map(AuditGuard),
            _recording_guard: recording.map(call_recording::RecordingGuard),
        }
    }

    /// Starts to send telemetry, if the configuration requests it.
    pub(super) fn start_telemetry(&mut self) -> anyhow::Result<()> {
        let Some(telemetry) = self.service.observers().telemetry() else {
            return Ok(());
        };
        let service = self.service.clone();
        let protocol = Arc::clone(&self.protocol);
        let measure = move || collect_metrics(&service, protocol.traffic()).unwrap_or_default();
        self.exporter = Some(telemetry.start(measure)?);
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
        self.embedder.call(tool, arguments, observer).await
    }

    /// Like [`Server::call`], for a caller that can ask a person. If the operator requires approval
    /// of the call, `allow` receives the question once the arguments are valid, and returns whether
    /// the call is allowed. If no approval is required, `allow` is not called.
    pub async fn call_allowed(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        allow: impl AsyncFnOnce(&str) -> bool,
    ) -> CallResult {
        self.embedder
            .call_allowed(tool, arguments, observer, allow)
            .await
    }

    /// Like [`Server::call`], for a command that answers the questions of these kinds.
    ///
    /// # Errors
    ///
    /// The error of `answers`, which ends the call.
    pub(crate) async fn call_answered(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        answerable: Vec<QuestionKind>,
        answers: &mut impl CallAnswers,
    ) -> anyhow::Result<CallResult> {
        self.embedder
            .call_answered(tool, arguments, observer, answerable, answers)
            .await
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
        let ended = stdio::serve(Arc::clone(&self.protocol), reader, writer, stop).await;
        self.protocol.tasks().stop().await;
        self.service.observers().finish();
        ended
    }

    /// Serves the console on this socket, in addition to a client on a pair of streams, until the
    /// returned handle is dropped. The console is created when it is first opened, and shows only
    /// later events.
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
        let folder_text = clean_line(&folder.to_string_lossy(), MAX_PATH_BYTES);
        // Calls that run before the console is opened are listed, too.
        let running = RunningCallTable::default();
        self.service.observers().track_calls(&running);
        let control = Arc::new(RunningCallControl::new(&self.service));
        let open = move || {
            let server = server.upgrade()?;
            let activity = ServerActivity::on_first_use().with_running_calls(&running);
            let activity = Arc::new(activity);
            stderr::set_console(&activity);
            server.service.observers().attach_console(&activity);
            tokio::spawn(Arc::clone(&activity).drain_calls());
            Some(console_opening::stdio_console(
                &server.service,
                &activity,
                &server.config,
                server.approver.clone(),
            ))
        };
        Ok(AbortOnDropHandle::new(tokio::spawn(
            toolbay_console::serve(listener, folder_text, control, open),
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
        let tls = self.config.http.open_tls()?;
        let mut options = self.config.http.options(self.config.metrics.enabled, tls);
        let address = listener.address()?;
        if let Some(why) = self.config.console.absence_reason(&self.config.http) {
            tracing::info!("there is no console: {why}");
        }
        let observers = self.service.observers();
        let history = match observers
            .attached_console()
            .zip(self.config.console_history_folder())
        {
            Some((activity, folder)) => Some(HistoryKeeper::start(activity, folder).await),
            None => None,
        };
        let _drain_task = self.service.observers().attached_console().map(|activity| {
            if let Some((pages, operators)) = console_opening::http_console(
                &self.service,
                activity,
                &self.config,
                self.approver.clone(),
                &address,
            ) {
                options.pages = Some(pages);
                *self.operators.lock() = Some(operators);
            }
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(activity).drain_calls()))
        });
        let ended = http::serve(
            Arc::clone(&self.protocol),
            options,
            listener,
            &self.access,
            stop,
        )
        .await;
        self.protocol.tasks().stop().await;
        self.service.observers().finish();
        if let Some(history) = history {
            history.finish().await;
        }
        ended.context("failed to serve HTTP")
    }

    /// Applies the settings of `config` that can change while a server runs: to new requests and
    /// calls, and to all plugins.
    pub(crate) fn apply_config(&self, config: &Config) {
        self.host
            .set_instructions(config.server.instructions.clone());
        self.service
            .admission()
            .set_client_rate(config.caller_rate_limit);
        self.access.update(config.http.access_policy());
        if let Some(operators) = &*self.operators.lock() {
            operators.update(config);
        }
        if let Some(live) = &self.live_rules {
            let LoadPolicy {
                limits,
                rate_limit,
                require_approval,
                approve_by,
                ..
            } = config.load_policy();
            live.update_defaults(&limits, rate_limit, require_approval, approve_by);
        }
    }

    /// Ends the sessions of tokens that were removed, and removes their tasks and stored results. A
    /// token that is added later with the same name does not inherit them.
    pub(crate) fn forget_tokens<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            let caller = http::token_caller_name(name);
            self.access.end_sessions_of(&caller);
            self.protocol.tasks().remove_owner(&caller);
            self.service.remove_results_of(&caller);
        }
    }

    /// Warns about patterns of tokens, scopes and recordings that match nothing, once every plugin
    /// has been loaded or refused.
    pub(crate) async fn warn_unmatched_patterns(&self) {
        let snapshot = self.complete().await;
        for pattern in pattern_warnings::unmatched_patterns(&self.config, &snapshot) {
            tracing::warn!("{pattern}");
        }
    }

    /// Returns the service, for commands that use its parts.
    pub(crate) fn service(&self) -> &CallService {
        &self.service
    }
}
