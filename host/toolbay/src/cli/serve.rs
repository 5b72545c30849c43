//! `toolbay serve`: MCP over standard input and output or over HTTP, until the client disconnects or a signal arrives.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use tokio::net::TcpListener;
use toolbay_mcp::{http, streams};
use toolbay_otel::Telemetry;
use toolbay_recording::Opened;

use super::common::{Common, Listen, begin, block_on};
use super::signals::{self, Signals};
use super::supervisor::{Supervisor, inherited};
use super::waiting;
use crate::config::{Config, ConfigError};
use crate::memory;
use crate::reread::Running;
use crate::server::Server;
use crate::wall::Wall;

pub(super) fn run(common: &Common, listen: &Listen) -> anyhow::Result<ExitCode> {
    let mut flags = common.flags(listen);
    let inherited = inherited().map_err(ConfigError::new)?;
    if let Some(listener) = &inherited {
        // Who can reach it decides what must be configured.
        flags.http = Some(listener.local_addr().context("failed to read the address of the socket")?);
    }
    let running = Running::read(flags)?;
    let config = running.config().clone();
    let telemetry = config.otel.settings().map_err(ConfigError::new)?.map(Telemetry::new);
    block_on(async {
        // Read once more when clients are served; a mistake stops the program before it listens.
        config.http.open_tls().map_err(ConfigError::new)?;
        // Before anything else: if the address is in use, nothing should start, and a confined server cannot listen any
        // more.
        let listener = match (inherited, config.http.listen) {
            (Some(listener), _) => Some(adopt(listener)?),
            (None, Some(address)) => Some(bind(address).await?),
            (None, None) => None,
        };
        let signals = Signals::listen().context("failed to listen for signals")?;
        // Its folder, which may be the user's home, is not kept for it.
        let opened = config.record.settings().map(|record| Opened::open(&record.file)).transpose()?;
        // No second thread has been started so far.
        let wall = Wall::build(&config)?;
        begin(&config, &config.log, telemetry.as_ref())?;
        memory::return_what_is_free();
        tokio::select! {
            served = serve(running, telemetry, opened, listener, &wall, &signals) => served?,
            () = signals.hurry.cancelled() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    http::bind(address).await.with_context(|| format!("failed to listen on {address}"))
}

/// The socket on which a supervisor listens already.
fn adopt(listener: std::net::TcpListener) -> anyhow::Result<TcpListener> {
    let adopted = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    adopted.context("failed to use the socket of the supervisor")
}

async fn serve(
    running: Running,
    telemetry: Option<Telemetry>,
    opened: Option<Opened>,
    listener: Option<TcpListener>,
    wall: &Wall,
    signals: &Signals,
) -> anyhow::Result<()> {
    let plugins = running.config().plugins.display().to_string();
    let Some(listener) = listener else {
        tracing::info!(%plugins, "serving over standard input and output");
        wall.log();
        let server = start(running.config().clone(), telemetry, opened, wall)?;
        tokio::spawn(read_again(running, Arc::downgrade(&server), Supervisor::default(), signals.clone()));
        let (reader, writer) = streams::standard();
        let ended = server.serve_stdio(reader, writer, signals.end.clone()).await;
        return ended.context("failed to read standard input");
    };
    tracing::info!(%plugins, "serving over HTTP");
    wall.log();
    let server = start(running.config().clone(), telemetry, opened, wall)?;
    let reporting = Arc::clone(&server);
    tokio::spawn(async move { reporting.report_useless_patterns().await });
    let supervisor = Supervisor::found();
    tokio::spawn(read_again(running, Arc::downgrade(&server), supervisor, signals.clone()));
    tokio::spawn(supervisor.accompany(server.service().catalog().clone(), signals.end.clone()));
    server.serve_http(listener, signals.end.clone()).await
}

/// Reads the configuration again whenever a signal says so.
async fn read_again(mut running: Running, server: Weak<Server>, supervisor: Supervisor, signals: Signals) {
    loop {
        signals.again.notified().await;
        let Some(server) = server.upgrade() else { return };
        supervisor.reloading();
        let read = tokio::task::spawn_blocking(move || {
            running.again(&server);
            running
        });
        match read.await {
            Ok(back) => running = back,
            Err(error) => return tracing::error!(%error, "reading the configuration again failed unexpectedly"),
        }
        supervisor.ready();
    }
}

/// Starts a server that logs suggested limits for each plugin when it receives `SIGUSR1`.
fn start(
    config: Config,
    telemetry: Option<Telemetry>,
    opened: Option<Opened>,
    wall: &Wall,
) -> anyhow::Result<Arc<Server>> {
    let server = Server::builder(config).telemetry(telemetry).behind(wall);
    let server = Arc::new(server.start_with(opened)?);
    let reporting = Arc::downgrade(&server);
    let report = move || {
        if let Some(server) = reporting.upgrade() {
            server.service().log_suggestions();
        }
    };
    signals::on_report(report).context("failed to listen for signals")?;
    tokio::spawn(waiting::tell(server.service().catalog().clone()));
    Ok(server)
}
