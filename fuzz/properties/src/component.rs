//! Properties of any file in the plugin folder, from its first byte to the results of its tools.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::Map;
use tokio::runtime::Runtime;
use toolbay::{CompileConfig, Config, Describe, Server, ServerConfig};
use toolbay_catalog::{
    CatalogPublisher, LoadError, LoadOutcome, PluginLoader, PluginState, Snapshot, assemble,
    channel,
};
use toolbay_mcp::{Revision, result_json, tool_json};
use toolbay_model::text::clean;
use toolbay_model::{
    CallError, CallFailure, CallObserver, CallResult, LimitsPatch, LogLevel, ProgressUpdate,
    TargetKind,
};
use toolbay_sandbox::Sandbox;

use crate::plain_line::is_plain_line;

/// ID of the only plugin.
const ID: &str = "plugin";

/// Maximum number of its tools that are called.
const CALLED: usize = 3;

/// Fuel limit: enough to reach interesting code, but a loop ends soon.
const FUEL: u64 = 5_000_000;

/// Time limit, chosen like [`FUEL`].
const TIMEOUT: Duration = Duration::from_millis(300);

/// Maximum length of a message about a file: a reason, and the mark that it was truncated.
const TEXT: usize = 2_100;

/// A server that compiles in this process and otherwise works like any other.
pub struct Components {
    sandbox: Sandbox,
    server: Server,
    publisher: CatalogPublisher,
    config: Config,
    cache: PathBuf,
    runtime: Runtime,
}

impl Components {
    /// Creates a server with its plugin folder and its compile cache in `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or the system does not provide threads or memory.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        let plugins = folder.join("plugins");
        let cache = folder.join("cache");
        fs::create_dir_all(&plugins)?;
        let small = LimitsPatch {
            fuel: Some(FUEL),
            timeout: Some(TIMEOUT),
            memory: Some(ByteSize::mib(8)),
            ..LimitsPatch::default()
        };
        let config = Config {
            plugins,
            server: ServerConfig {
                calls: 16,
                ..ServerConfig::default()
            },
            ceilings: small.clone(),
            limits: small,
            describe: Describe {
                fuel: FUEL,
                timeout: TIMEOUT,
                ..Describe::default()
            },
            compile: CompileConfig {
                cache_folder: Some(cache.clone()),
                ..CompileConfig::default()
            },
            ..Config::default()
        };
        let mut settings = config.sandbox_settings()?;
        settings.compiler = None;
        let cache = settings
            .cache
            .as_ref()
            .map_or(cache, |(folder, _)| folder.clone());
        let sandbox = Sandbox::new(settings)?;
        let (publisher, catalog) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let server = {
            let _runtime = runtime.enter();
            Server::with_catalog(config.clone(), sandbox.clone(), catalog)?
        };
        Ok(Self {
            sandbox,
            server,
            publisher,
            config,
            cache,
            runtime,
        })
    }

    /// Loads a plugin with these bytes, loads it again from the compile cache, and calls its tools.
    ///
    /// # Panics
    ///
    /// If a property does not hold.
    pub fn check(&self, bytes: &[u8]) {
        if let Err(error) = fs::write(self.config.plugins.join(format!("{ID}.wasm")), bytes) {
            unreachable!("the plugin cannot be written: {error}");
        }
        self.runtime.block_on(async {
            match self.load().await {
                Ok(loaded) => {
                    self.again(&loaded).await;
                    self.offer(loaded);
                    self.call().await;
                    self.publisher.publish(Snapshot::default());
                }
                Err(LoadError::Refused(why)) => {
                    assert!(is_plain_line(&why) && why.len() <= TEXT, "{why:?}");
                    assert!(
                        !why.contains("panicked") && !why.contains("unexpectedly"),
                        "{why}"
                    );
                }
                // The machine is busy: listing the tools took too long.
                Err(LoadError::Transient(why)) => assert!(is_plain_line(&why), "{why:?}"),
                Err(LoadError::Incomplete(_)) => {}
                Err(LoadError::Gone) => unreachable!("the file is there"),
                Err(LoadError::Held(_)) => unreachable!("there is no lock file"),
            }
        });
        assert_eq!(self.sandbox.pool_usage(), 0, "a guest outlived its call");
        self.empty_cache();
    }

    /// Loads the plugin with a new loader, which has no state of earlier loads.
    async fn load(&self) -> Result<LoadOutcome, LoadError> {
        let plugins = self.config.plugins.clone();
        Arc::new(PluginLoader::new(
            self.sandbox.clone(),
            self.config.load_policy(),
            plugins,
        ))
        .load(ID.to_owned())
        .await
    }

    /// Loads the component again. It must be in the compile cache, and loading it from there must
    /// give the same result.
    async fn again(&self, first: &LoadOutcome) {
        let digest = first.plugin.component.digest;
        assert!(
            self.sandbox.open_cached(digest).is_some(),
            "it is not in the compile cache"
        );
        let second = match self.load().await {
            Ok(second) => second,
            Err(error) => unreachable!("it loaded once, and not again: {error:?}"),
        };
        let names = |loaded: &LoadOutcome| -> Vec<String> {
            loaded
                .plugin
                .component
                .contents
                .tools
                .iter()
                .map(|definition| definition.tool.name.clone())
                .collect()
        };
        assert_eq!(second.plugin.component.digest, digest);
        assert_eq!(names(&second), names(first));
    }

    fn offer(&self, loaded: LoadOutcome) {
        let candidate = PluginState {
            plugin: Some(loaded.plugin),
            problem: None,
            remarks: loaded.remarks,
            ..PluginState::default()
        };
        let snapshot = assemble(&BTreeMap::from([(ID.to_owned(), candidate)]), true);
        for problem in snapshot
            .plugins
            .values()
            .flat_map(|report| &report.problems)
        {
            assert!(is_plain_line(problem), "{problem:?}");
        }
        self.publisher.publish(snapshot);
    }

    /// Calls its first tools. Every client must be able to receive the results.
    async fn call(&self) {
        let snapshot = self.server.snapshot();
        for (name, offer) in snapshot.tools.iter().take(CALLED) {
            assert!(tool_json(&offer.tool).is_object());
            for revision in Revision::ALL {
                let answer = self
                    .server
                    .call(name.clone(), Map::new(), Arc::new(Watcher))
                    .await;
                judge(&answer);
                // In older revisions, invalid arguments are a protocol error.
                drop(result_json(answer, TargetKind::Tool, revision));
            }
        }
    }

    /// Clears the compile cache, so that the same input takes the same path again.
    fn empty_cache(&self) {
        let files = fs::read_dir(&self.cache).into_iter().flatten().flatten();
        files.for_each(|file| drop(fs::remove_file(file.path())));
    }
}

fn judge(answer: &CallResult) {
    if let Some(usage) = answer.usage {
        assert!(
            usage.fuel <= FUEL && usage.memory <= ByteSize::mib(8).as_u64(),
            "{usage:?}"
        );
    }
    match &answer.result {
        Ok(_) | Err(CallFailure::Rejected(_)) => {}
        Err(CallFailure::InvalidArguments { violations, .. }) => {
            assert!(!violations.is_empty());
            for violation in violations {
                assert!(is_plain_line(&violation.to_string()), "{violation:?}");
            }
        }
        Err(CallFailure::MissingCapabilities(missing)) => assert!(!missing.is_empty()),
        Err(CallFailure::Unknown(unknown)) => {
            unreachable!("{} {} is listed and unknown", unknown.kind, unknown.name)
        }
        Err(CallFailure::Call(CallError::Incapable(_))) => {
            unreachable!("it is told as missing capabilities")
        }
        Err(CallFailure::Outdated) => unreachable!("nothing was asked"),
        Err(CallFailure::Unapproved(_)) => unreachable!("nobody needs to allow it"),
        Err(CallFailure::Oversized(_)) => unreachable!("an embedder gets results whole"),
        Err(CallFailure::Call(CallError::Internal(what))) => {
            unreachable!("a fault of ours: {what}")
        }
        Err(CallFailure::Call(CallError::Failed(text) | CallError::InvalidArguments(text))) => {
            assert_eq!(clean(text), *text);
        }
        Err(CallFailure::Call(CallError::Trap {
            cause: what,
            stderr,
        })) => {
            assert!(is_plain_line(what), "{what:?}");
            assert!(
                stderr
                    .as_ref()
                    .is_none_or(|stderr| clean(stderr) == *stderr),
                "{stderr:?}"
            );
        }
        Err(CallFailure::Call(CallError::InvalidOutput(what))) => {
            assert!(is_plain_line(what), "{what:?}");
        }
        Err(CallFailure::Call(CallError::Limit { limit, tool })) => {
            assert!(
                is_plain_line(&limit.message("tool", tool.as_deref())),
                "{limit:?} of {tool:?}"
            );
        }
        Err(CallFailure::Call(CallError::Denied {
            message: words,
            denial: denied,
        })) => {
            assert_eq!(clean(words), *words);
            assert!(is_plain_line(denied), "{denied:?}");
        }
        Err(CallFailure::Call(CallError::Cancelled | CallError::Stopped)) => {
            unreachable!("nobody cancelled it")
        }
    }
}

/// Checks the output of a running guest: sanitized text, and increasing progress.
struct Watcher;

impl CallObserver for Watcher {
    fn log(&self, _level: LogLevel, message: &str) {
        assert_eq!(clean(message), message);
    }

    fn progress(&self, progress: ProgressUpdate) {
        assert!(
            progress.progress.is_finite() && progress.total.is_none_or(f64::is_finite),
            "{progress:?}"
        );
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
