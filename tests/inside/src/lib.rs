//! A server in this process, which compiles plugins here and loads them on request: for
//! measurements that are impossible from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytesize::ByteSize;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolbay::{CompileConfig, Config, Server};
use toolbay_catalog::{
    Catalog, CatalogPublisher, FolderReloader, FolderWatcher, PluginLoader, PluginState, Snapshot,
    assemble, channel,
};
use toolbay_model::{CallResult, LimitsPatch, NoopObserver};
use toolbay_sandbox::Sandbox;

/// A server with its own plugin folder.
pub struct Inside {
    folder: TempDir,
    config: Config,
    sandbox: Sandbox,
    catalog: Catalog,
    publisher: Option<CatalogPublisher>,
    /// The server.
    pub server: Arc<Server>,
    /// The runtime that executes it.
    pub runtime: Runtime,
}

impl Inside {
    /// Creates a server without plugins.
    ///
    /// # Errors
    ///
    /// The system does not provide threads, memory or folders.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder")?;
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).context("no folder")?;
        // High enough for long computations on any machine.
        let limits = LimitsPatch {
            fuel: Some(1_000_000_000_000),
            timeout: Some(Duration::from_mins(5)),
            memory: Some(ByteSize::mib(512)),
            ..LimitsPatch::default()
        };
        let compile = CompileConfig {
            cache_folder: Some(folder.path().join("cache")),
            ..CompileConfig::default()
        };
        let config = Config {
            plugins,
            limits,
            compile,
            ..Config::default()
        };
        let mut settings = config.sandbox_settings()?;
        settings.compiler = None;
        let sandbox = Sandbox::new(settings)?;
        let (publisher, catalog) = channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let server = {
            let _runtime = runtime.enter();
            Arc::new(Server::with_catalog(
                config.clone(),
                sandbox.clone(),
                catalog.clone(),
            )?)
        };
        Ok(Self {
            folder,
            config,
            sandbox,
            catalog,
            publisher: Some(publisher),
            server,
            runtime,
        })
    }

    /// Returns a path in the plugin folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.config.plugins.join(name)
    }

    /// Returns a path next to the plugin folder.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces all plugins with these, by their IDs.
    ///
    /// # Errors
    ///
    /// A plugin is rejected, or the server watches its folder.
    pub fn offer(&self, plugins: &[(&str, &[u8])]) -> Result<Arc<Snapshot>> {
        let mut candidates = BTreeMap::new();
        for (id, bytes) in plugins {
            fs::write(self.path(&format!("{id}.wasm")), bytes)
                .context("failed to write a plugin")?;
            let loader = Arc::new(self.loader(&self.config.plugins));
            let read = self.runtime.block_on(loader.load((*id).to_owned()));
            let read = read.map_err(|error| anyhow!("{id} is refused: {error:?}"))?;
            let candidate = PluginState {
                plugin: Some(read.plugin),
                problem: None,
                remarks: read.remarks,
                ..PluginState::default()
            };
            candidates.insert((*id).to_owned(), candidate);
        }
        let publisher = self
            .publisher
            .as_ref()
            .context("the server watches its folder")?;
        publisher.publish(assemble(&candidates, true));
        Ok(self.server.snapshot())
    }

    /// Starts to watch the plugin folder.
    ///
    /// # Errors
    ///
    /// The folder is already watched, or the system cannot watch it.
    pub fn watch(&mut self) -> Result<()> {
        let publisher = self
            .publisher
            .take()
            .context("the server watches its folder already")?;
        let watcher =
            FolderWatcher::new(&self.config.plugins).map_err(|error| anyhow!("{error}"))?;
        let reloader = FolderReloader::new(self.loader(&self.config.plugins), publisher);
        self.runtime
            .spawn(reloader.run(Some(watcher), CancellationToken::new()));
        Ok(())
    }

    /// Waits for a snapshot that meets the condition.
    pub fn wait_for(&self, condition: impl FnMut(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.runtime.block_on(self.catalog.wait_for(condition))
    }

    /// Returns the result of a call.
    pub fn call(&self, tool: &str, arguments: &Map<String, Value>) -> CallResult {
        self.runtime.block_on(self.server.call(
            tool.to_owned(),
            arguments.clone(),
            Arc::new(NoopObserver),
        ))
    }

    fn loader(&self, plugins: &Path) -> PluginLoader {
        PluginLoader::new(
            self.sandbox.clone(),
            self.config.load_policy(),
            plugins.to_owned(),
        )
    }
}
