//! The parts put together: what an embedder starts, and what the command line is made of.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolbay_catalog::{Loader, Reloader, Snapshot, Watcher, channel};
use toolbay_mcp::streams::{Reader, Writer};
use toolbay_mcp::{Call, Host as _, http, stdio};
use toolbay_model::{Answer, CallError, Failure, Observer};
use toolbay_sandbox::Sandbox;

use crate::config::Config;
use crate::service::Service;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerBuilder {
    config: Config,
    watch: bool,
    compiler: Option<PathBuf>,
}

/// A server that loads plugins and can be served or called. Dropped, it stops loading; what clients were promised is
/// theirs as long as they are served.
pub struct Server {
    service: Service,
    config: Config,
    _loading: DropGuard,
}

impl ServerBuilder {
    /// Whether to follow changes of the plugin folder; it does unless told otherwise. Without, each file is loaded once.
    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// The `toolbay` program that compiles plugins, as a child; by default, the running program.
    #[must_use]
    pub fn compiler(self, program: impl Into<PathBuf>) -> Self {
        Self { compiler: Some(program.into()), ..self }
    }

    /// Starts loading. Must be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// The machine refuses threads or memory.
    pub fn start(self) -> anyhow::Result<Server> {
        let Self { config, watch, compiler } = self;
        let mut settings = config.sandbox()?;
        settings.compiler = compiler.or(settings.compiler);
        let sandbox = Sandbox::new(settings)?;
        let watcher = if watch { watcher(&config) } else { None };
        let loader = Loader::new(sandbox.clone(), config.rules(), config.plugins.clone());
        let (publisher, catalog) = channel();
        let stop = CancellationToken::new();
        tokio::spawn(Reloader::new(loader, publisher).run(watcher, stop.clone()));
        let service = Service::new(catalog, sandbox, &config);
        Ok(Server { service, config, _loading: stop.drop_guard() })
    }
}

/// A watcher, or none where the system refuses: the folder is looked at every two seconds then.
fn watcher(config: &Config) -> Option<Watcher> {
    Watcher::new(&config.plugins)
        .inspect_err(|error| tracing::warn!("{error}; checking the folder every 2 s instead"))
        .ok()
}

impl Server {
    /// A server by this configuration.
    pub fn builder(config: Config) -> ServerBuilder {
        ServerBuilder { config, watch: true, compiler: None }
    }

    /// What is offered now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.service.catalog().snapshot()
    }

    /// Waits until every plugin that was in the folder at start has been tried.
    pub async fn complete(&self) -> Arc<Snapshot> {
        self.service.catalog().wait_for(|snapshot| snapshot.complete).await
    }

    /// Waits until a snapshot satisfies `condition`, starting with the present one.
    pub async fn wait_for(&self, condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.service.catalog().wait_for(condition).await
    }

    /// Calls a tool, under the limits that serving would apply.
    pub async fn call(&self, tool: String, arguments: Map<String, Value>, observer: Arc<dyn Observer>) -> Answer {
        let client = self.service.client();
        let call = Call { tool, permitted: true, arguments, capabilities: Map::new(), trace: None };
        let running = self.service.sandbox().spawn(async move {
            match client.queue(&call.tool) {
                Ok(mut place) => place.call(call, observer).await,
                Err(rejection) => Answer { result: Err(Failure::Rejected(rejection)), usage: None },
            }
        });
        running.await.unwrap_or_else(|error| {
            let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
            Answer { result: Err(Failure::Call(error)), usage: None }
        })
    }

    /// Serves one client on a pair of streams until it closes its end, goes away, or `stop`.
    ///
    /// # Errors
    ///
    /// Reading failed. A client that no longer reads is not an error.
    pub async fn serve_stdio(&self, reader: Reader, writer: Writer, stop: CancellationToken) -> std::io::Result<()> {
        let ended = stdio::serve(Arc::new(self.service.clone()), reader, writer, stop).await;
        self.service.tally().log();
        ended
    }

    /// Serves clients over HTTP until `stop`, and then for the grace time at the most.
    ///
    /// # Errors
    ///
    /// What the configuration names cannot be read, or the listener has no address.
    pub async fn serve_http(&self, listener: TcpListener, stop: CancellationToken) -> anyhow::Result<()> {
        let host = Arc::new(self.service.clone());
        let ended = http::serve(host, self.config.http.options(), listener, stop).await;
        self.service.tally().log();
        ended.context("failed to serve HTTP")
    }

    /// Warns about patterns of tokens and scopes that no tool fits, once every plugin has been tried.
    pub(crate) async fn report_useless_patterns(&self) {
        let snapshot = self.complete().await;
        let http = &self.config.http;
        let tokens = http.tokens.iter().flat_map(|token| {
            let patterns = token.tools.iter().flatten();
            patterns.map(move |pattern| (format!("http.tokens {:?}", token.name), pattern))
        });
        let scopes = http.oauth.iter().flat_map(|oauth| &oauth.tools).flat_map(|(scope, patterns)| {
            patterns.iter().map(move |pattern| (format!("http.oauth.tools.{scope}"), pattern))
        });
        for (place, pattern) in tokens.chain(scopes) {
            if !snapshot.tools.keys().any(|name| pattern.fits(name)) {
                tracing::warn!("{place}: no tool matches {:?}", pattern.to_string());
            }
        }
    }

    /// The parts, for commands that ask them.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }
}
