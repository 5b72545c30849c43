//! Creates the console of a server, over HTTP or on the socket of a server over stdio.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolbay_catalog::VersionApprover;
use toolbay_console::{
    Console, ConsoleAccess, ConsoleOperations, HistoryFile, OpenedConsole, Router, ServerActivity,
    approval_handler,
};
use toolbay_mcp::http::ListenAddress;

use crate::call::service::CallService;
use crate::config::{Config, ConsoleOpener};
use crate::serve::console_operations::ConsoleBackend;
use crate::serve::console_operators::{ConsoleOperators, admin_tokens, other_tokens};

/// Maximum time that the start and the end of a server wait for the file with the charts.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the router of the configured console, and its operators. `None` if there is no console.
pub(crate) fn http_console(
    service: &CallService,
    activity: &Arc<ServerActivity>,
    config: &Config,
    approver: Option<VersionApprover>,
    address: &ListenAddress,
) -> Option<(Router, ConsoleOperators)> {
    let scheme = if config.http.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let access = match config.console.opener(&config.http)? {
        ConsoleOpener::LogReader => {
            ConsoleAccess::local(format!("{scheme}://{}", address.authority()))
        }
        ConsoleOpener::Admin => {
            tracing::info!(
                "the console is at {scheme}://{}{}; it opens with a token of http.tokens that has admin = true",
                address.authority(),
                toolbay_console::PATH
            );
            ConsoleAccess::admins(admin_tokens(config), other_tokens(config))
        }
    };
    let backend = ConsoleBackend::new(service, config, approver);
    let operators = ConsoleOperators::new(access.clone(), backend.rights().clone());
    let port = match address {
        ListenAddress::Internet(address) => address.port(),
        ListenAddress::Unix(_) => 0,
    };
    let operations = Arc::new(backend);
    let console_activity = Arc::clone(activity);
    let session_lifetime = config.console.session;
    let console = Console::new(
        operations,
        console_activity,
        access,
        port,
        session_lifetime,
        toolbay_mcp::http::network_of,
        config.http.idle_timeout,
    );
    Some((console.router(), operators))
}

/// A task that keeps the statistics for charts in a file. It ends after this value is dropped.
#[derive(Debug)]
pub(crate) struct HistoryKeeper {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl HistoryKeeper {
    /// Starts the task for a file in this folder, and waits for a limited time until the file is
    /// read. If the folder cannot be used, the charts begin with the server.
    pub(crate) async fn start(activity: &Arc<ServerActivity>, folder: PathBuf) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let activity = Arc::clone(activity);
        let (opened_sender, opened) = oneshot::channel();
        let task = tokio::spawn(async move {
            let opening = move || HistoryFile::open(&folder, &activity);
            let opening = tokio::task::spawn_blocking(opening).await;
            let _ = opened_sender.send(());
            match opening.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(file) => file.keep(stopped).await,
                Err(why) => {
                    tracing::warn!("the charts of the console begin with this start: {why}");
                }
            }
        });
        // A file system can hang, and the charts are not worth a delay of the server.
        drop(timeout(HISTORY_TIMEOUT, opened).await);
        Self {
            stop: stop.drop_guard(),
            task,
        }
    }

    /// Writes the newest statistics, within a limited time.
    pub(crate) async fn finish(self) {
        drop(self.stop);
        if timeout(HISTORY_TIMEOUT, self.task).await.is_err() {
            tracing::warn!(
                "the newest charts of the console were not written within {} s",
                HISTORY_TIMEOUT.as_secs()
            );
        }
    }
}

/// Returns the console of a server over stdio. It is opened with a token from its socket.
pub(crate) fn stdio_console(
    service: &CallService,
    activity: &Arc<ServerActivity>,
    config: &Config,
    approver: Option<VersionApprover>,
) -> OpenedConsole {
    let backend = ConsoleBackend::new(service, config, approver);
    let access = ConsoleAccess::socket();
    let name = format!("stdio_{}", std::process::id());
    let operations: Arc<dyn ConsoleOperations> = Arc::new(backend);
    let console_activity = Arc::clone(activity);
    let session_lifetime = config.console.session;
    // All connections through the socket come from one user. A program that forwards a port to it
    // counts accounts itself.
    let console = Console::new(
        Arc::clone(&operations),
        console_activity,
        access.clone(),
        name,
        session_lifetime,
        |_| None,
        config.http.idle_timeout,
    );
    OpenedConsole {
        router: console.router(),
        approvals: approval_handler(operations),
        access,
    }
}
