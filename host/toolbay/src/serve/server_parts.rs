//! The parts of a server, as its configuration requests them: keys, logs, recordings, metrics and
//! the watcher.

use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use toolbay_audit::AuditLog;
use toolbay_catalog::{Catalog, FolderWatcher, PublishListener, Snapshot};
use toolbay_console::ServerActivity;
use toolbay_mcp::{RequestStates, ResourceUpdates};
use toolbay_private::PrivateFolder;
use toolbay_recording::{CallRecorder, RecordingFile};
use toolbay_state::StateStore;

use crate::config::{Arguments, Config};
use crate::observe::call_recording::ServerRecording;
use crate::observe::metrics::ServerMetrics;
use crate::observe::server_audit::ServerAudit;
use crate::process::stderr;

/// Notifies subscribed clients of changed resources.
pub(super) struct SubscriptionNotifier(pub(super) ResourceUpdates);

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
pub(super) fn open_request_states(config: &Config) -> anyhow::Result<RequestStates> {
    let key = config.server.request_state_key()?;
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
pub(super) fn ephemeral_request_states() -> anyhow::Result<RequestStates> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).context("the system provides no random bytes")?;
    RequestStates::in_memory(&key).context("failed to seal the states of requests")
}

/// Creates the metrics, if the configuration requests them and they can be read over HTTP or sent.
pub(super) fn create_metrics(config: &Config) -> Option<Arc<ServerMetrics>> {
    let pushed = config.otel.metrics && config.otel.is_enabled();
    (pushed || config.metrics.enabled && config.http.listen.is_some()).then(Arc::default)
}

/// Creates the data source of the console, if there is a console and `serves_clients` is set. It
/// receives log lines from this point on.
pub(super) fn create_console_activity(
    config: &Config,
    serves_clients: bool,
) -> Option<Arc<ServerActivity>> {
    config
        .console
        .opener(&config.http)
        .filter(|_| serves_clients)?;
    let activity = Arc::<ServerActivity>::default();
    stderr::set_console(&activity);
    Some(activity)
}

/// Opens the audit log that the configuration requests.
pub(super) fn open_audit_log(config: &Config) -> anyhow::Result<Option<ServerAudit>> {
    let Some(settings) = config.audit.settings() else {
        return Ok(None);
    };
    let audit = AuditLog::open(&settings, config.server.max_entered_calls())
        .context("failed to open the audit log")?;
    Ok(Some(ServerAudit::new(
        audit,
        config.audit.arguments == Arguments::Full,
    )))
}

/// Opens the recording that the configuration requests. `file` is its file if it is already open.
pub(super) fn open_recording(
    config: &Config,
    file: Option<RecordingFile>,
) -> anyhow::Result<Option<ServerRecording>> {
    let Some(settings) = config.record.settings() else {
        return Ok(None);
    };
    let version = env!("CARGO_PKG_VERSION");
    let recorder = match file {
        Some(opened) => CallRecorder::start(opened, &settings, version)?,
        None => CallRecorder::open(&settings, version)?,
    };
    Ok(Some(ServerRecording::new(
        recorder,
        config.record.tools.clone(),
    )))
}

/// Creates a watcher of the plugin folder. Returns `None` if the system provides none; the folder
/// is then checked every 2 s.
pub(super) fn create_watcher(config: &Config) -> Option<FolderWatcher> {
    FolderWatcher::new(&config.plugins)
        .inspect_err(|error| tracing::warn!("{error}; checking the folder every 2 s instead"))
        .ok()
}

/// Opens the state as soon as a plugin may use it, so that the log reports a failure early.
pub(super) async fn open_state(
    state: Arc<dyn StateStore>,
    catalog: Catalog,
    stop: CancellationToken,
) {
    let grants_state = |snapshot: &Snapshot| {
        let grants = snapshot
            .plugins
            .values()
            .filter_map(|report| report.grant.as_ref());
        grants
            .into_iter()
            .any(|grant| grant.permissions.state.is_some())
    };
    let open = async {
        catalog.wait_for(grants_state).await;
        if let Err(error) = state.open().await {
            tracing::error!("{}", error.details());
        }
    };
    stop.run_until_cancelled(open).await;
}
