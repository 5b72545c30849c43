//! `toolbay serve`: serves MCP over stdio or HTTP, until the client disconnects or a signal
//! arrives.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::task::AbortOnDropHandle;
use toolbay_mcp::http::{ListenAddress, SocketListener};
use toolbay_mcp::process_stdio;
use toolbay_otel::Telemetry;
use toolbay_recording::RecordingFile;
use toolbay_socket::SocketFile;

use super::common::{Common, Listen, block_on, start_logging};
use super::load_progress;
use super::lock::check_locked;
use super::signals::{self, Signals};
use super::supervisor::{Supervisor, inherited_socket};
use super::sync;
use crate::config::{Config, ConfigError};
use crate::process::allocator;
use crate::serve::config_reload::RunningConfig;
use crate::serve::confinement::{ConfinementNeeds, ServerConfinement};
use crate::serve::console_socket::ConsoleSocket;
use crate::serve::server::Server;

/// Serves. If `syncs`, first gets the plugins that `toolbay.plugins.toml` pins.
pub(super) fn run(common: &Common, listen: &Listen, syncs: bool) -> anyhow::Result<ExitCode> {
    let mut flags = common.flags(listen);
    let inherited = inherited_socket()?;
    if let Some(listener) = &inherited {
        // The required settings depend on who can reach the socket.
        flags.http = Some(listener.address()?);
    }
    if syncs {
        sync::run_before_serving(common, listen.locked)?;
    }
    let running = RunningConfig::read(flags)?;
    let config = running.config().clone();
    let telemetry = config.otel.settings()?.map(Telemetry::new);
    block_on(async {
        // The files are read again when clients are served. A mistake stops the program before it
        // listens.
        config.http.open_tls()?;
        let mut needs = {
            let bound_address = config.http.listen.as_ref().filter(|_| inherited.is_none());
            ConfinementNeeds::from_config(
                &config,
                bound_address.and_then(ListenAddress::socket_path),
            )?
        };
        // First, because nothing should start if the address is in use, and because a confined
        // server can no longer listen.
        let (listener, _file) = match (inherited, &config.http.listen) {
            (Some(listener), _) => (
                Some(
                    listener
                        .into_listener()
                        .context("failed to use the socket of the supervisor")?,
                ),
                None,
            ),
            (None, Some(ListenAddress::Internet(address))) => {
                let bound = TcpListener::bind(address).await;
                (
                    Some(
                        bound
                            .with_context(|| format!("failed to listen on {address}"))?
                            .into(),
                    ),
                    None,
                )
            }
            (None, Some(ListenAddress::Unix(path))) => {
                let (listener, file) = bind_unix(path, config.http.socket_mode)?;
                (Some(listener), Some(file))
            }
            (None, None) => (None, None),
        };
        let has_console_socket =
            config.console.has_stdio_socket(&config.http) && listener.is_none();
        let console_socket = has_console_socket.then(ConsoleSocket::bind);
        let supervisor = if listener.is_some() {
            Supervisor::from_environment()
        } else {
            Supervisor::default()
        };
        let signals = Signals::listen().context("failed to listen for signals")?;
        // Opened before confinement, so that the directory of the file, which may be the user's
        // home, need not stay accessible.
        let recording_file = config
            .record
            .settings()
            .map(|record| RecordingFile::open(&record.file))
            .transpose()?;
        // No second thread has been started yet.
        if let Some(Ok(socket)) = &console_socket {
            needs = needs.with_socket(&config, socket.file.path())?;
        }
        let confinement = ServerConfinement::build(&config, needs)?;
        start_logging(&config, &config.log, telemetry.as_ref())?;
        allocator::start_background_purge();
        tokio::select! {
            served = serve(running, telemetry, recording_file, ListenSockets { listener, console: console_socket, supervisor }, &confinement, &signals) => served?,
            () = signals.force_shutdown.cancelled() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Listens on a Unix socket. Its file is removed when the server ends.
fn bind_unix(path: &Path, mode: u32) -> anyhow::Result<(SocketListener, SocketFile)> {
    let (listener, file) = SocketFile::bind(path, mode).map_err(|error| {
        let message = format!("failed to listen on unix:{}: {error}", path.display());
        // As with ports, an address in use is not a configuration error.
        if error.kind() == ErrorKind::AddrInUse {
            anyhow::Error::msg(message)
        } else {
            ConfigError::new(message).into()
        }
    })?;
    let listener = UnixListener::from_std(listener).context("failed to use the socket")?;
    Ok((listener.into(), file))
}

/// The sockets of a server.
struct ListenSockets {
    /// The listener for clients. `None` if the client uses stdio.
    listener: Option<SocketListener>,
    /// The socket for the console of a stdio server, if enabled.
    console: Option<Result<ConsoleSocket, String>>,
    /// The supervisor that receives the server's status. The default, which receives none, with a
    /// client on stdio.
    supervisor: Supervisor,
}

async fn serve(
    running: RunningConfig,
    telemetry: Option<Telemetry>,
    recording_file: Option<RecordingFile>,
    ListenSockets {
        listener,
        console: console_socket,
        supervisor,
    }: ListenSockets,
    confinement: &ServerConfinement,
    signals: &Signals,
) -> anyhow::Result<()> {
    let plugins = running.config().plugins.display().to_string();
    let Some(listener) = listener else {
        tracing::info!(%plugins, "serving over standard input and output");
        confinement.log();
        let server = start_server(
            running.config().clone(),
            telemetry,
            recording_file,
            confinement,
        )?;
        check_lock(&server, running.config()).await?;
        tokio::spawn(reload_on_signal(
            running,
            Arc::downgrade(&server),
            supervisor,
            signals.clone(),
        ));
        let _console = console_socket.and_then(|beside| serve_console(&server, beside));
        let (reader, writer) = process_stdio::open_stdio();
        let ended = server
            .serve_stdio(reader, writer, signals.shutdown.clone())
            .await;
        return ended.context("failed to read standard input");
    };
    tracing::info!(%plugins, "serving over HTTP");
    confinement.log();
    let http = &running.config().http;
    if matches!(http.listen, Some(ListenAddress::Internet(address)) if address.ip().is_loopback())
        && !http.needs_token()
    {
        tracing::warn!(
            "every account of this machine can call all tools through this port, because http.tokens and http.oauth are not set; \
             set one of them, or listen on a Unix socket"
        );
    }
    let server = start_server(
        running.config().clone(),
        telemetry,
        recording_file,
        confinement,
    )?;
    check_lock(&server, running.config()).await?;
    let warning_server = Arc::clone(&server);
    tokio::spawn(async move { warning_server.warn_unmatched_patterns().await });
    tokio::spawn(reload_on_signal(
        running,
        Arc::downgrade(&server),
        supervisor.clone(),
        signals.clone(),
    ));
    tokio::spawn(
        supervisor.report_status(server.service().catalog().clone(), signals.shutdown.clone()),
    );
    server.serve_http(listener, signals.shutdown.clone()).await
}

/// With `--locked`, waits for every plugin and checks that it is the one in the lock file.
async fn check_lock(server: &Server, config: &Config) -> anyhow::Result<()> {
    if !config.locked {
        return Ok(());
    }
    let snapshot = server.complete().await;
    check_locked(&config.plugins, &snapshot)
}

/// Serves the console next to a stdio client. The server continues without a console on failure.
/// The returned [`SocketFile`] removes the socket on drop.
fn serve_console(
    server: &Arc<Server>,
    socket: Result<ConsoleSocket, String>,
) -> Option<(AbortOnDropHandle<()>, SocketFile)> {
    let serving = socket.and_then(|ConsoleSocket { listener, file }| {
        let task = server
            .serve_console(listener)
            .map_err(|error| error.to_string())?;
        Ok((task, file))
    });
    match serving {
        Ok(serving) => {
            tracing::debug!(
                "`toolbay console` opens the console through {}",
                serving.1.path().display()
            );
            Some(serving)
        }
        Err(why) => {
            tracing::info!("`toolbay console` cannot open the console of this server: {why}");
            None
        }
    }
}

/// Reloads the configuration on each signal.
async fn reload_on_signal(
    mut running: RunningConfig,
    server: Weak<Server>,
    supervisor: Supervisor,
    signals: Signals,
) {
    loop {
        signals.reload.notified().await;
        let Some(server) = server.upgrade() else {
            return;
        };
        supervisor.notify_reloading();
        let read = tokio::task::spawn_blocking(move || {
            running.reload(&server);
            running
        });
        match read.await {
            Ok(reloaded) => running = reloaded,
            Err(error) => {
                return tracing::error!(%error, "reading the configuration again failed unexpectedly");
            }
        }
        supervisor.notify_ready();
    }
}

/// Starts a server that logs suggested limits for each plugin when it receives `SIGUSR1`.
fn start_server(
    config: Config,
    telemetry: Option<Telemetry>,
    recording_file: Option<RecordingFile>,
    confinement: &ServerConfinement,
) -> anyhow::Result<Arc<Server>> {
    let server = Server::builder(config)
        .telemetry(telemetry)
        .with_confinement(confinement);
    let server = Arc::new(server.start_with(recording_file)?);
    let weak_server = Arc::downgrade(&server);
    let report = move || {
        if let Some(server) = weak_server.upgrade() {
            server.service().log_suggestions();
        }
    };
    signals::on_report(report).context("failed to listen for signals")?;
    tokio::spawn(load_progress::log_progress(
        server.service().catalog().clone(),
    ));
    Ok(server)
}
