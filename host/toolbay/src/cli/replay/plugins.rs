//! Loads the plugins of replayed calls, each of them once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toolbay_catalog::{LoadPolicy, ValidDefinition};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use toolbay_sandbox::{PreparedComponent, Sandbox};

use super::super::plugin_file::{
    MAX_REASON_BYTES, load_plugin, printable_path, read_plugin_source,
};
use crate::config::Config;

/// A plugin file that replaces the one in the plugin folder.
#[derive(Clone, Debug)]
pub(super) struct PluginOverride {
    /// The ID of the plugin.
    pub(super) id: String,
    pub(super) file: PathBuf,
}

/// A plugin whose calls are replayed.
pub(super) struct ReplayPlugin {
    pub(super) digest: Digest,
    pub(super) prepared: PreparedComponent,
    /// The tools, by their names within the plugin.
    tools: BTreeMap<String, Arc<ValidDefinition>>,
}

/// The plugins, which are loaded on first use.
pub(super) struct ReplayPlugins {
    sandbox: Sandbox,
    folder: PathBuf,
    /// Maximum size of a plugin file, in bytes.
    max_file_bytes: u64,
    rules: LoadPolicy,
    plugin_override: Option<PluginOverride>,
    loaded: BTreeMap<String, Result<Arc<ReplayPlugin>, String>>,
}

impl ReplayPlugin {
    /// Returns the tool with this name. A command has a single tool without a name.
    pub(super) fn tool(&self, name: &str) -> Option<&Arc<ValidDefinition>> {
        if self.prepared.is_command() {
            self.tools.values().next()
        } else {
            self.tools.get(name)
        }
    }
}

impl ReplayPlugins {
    pub(super) fn new(
        sandbox: Sandbox,
        config: &Config,
        plugin_override: Option<PluginOverride>,
    ) -> Self {
        let folder = config.plugins.clone();
        let max_file_bytes = config.server.component_size.as_u64();
        let rules = config.load_policy();
        Self {
            sandbox,
            folder,
            max_file_bytes,
            rules,
            plugin_override,
            loaded: BTreeMap::new(),
        }
    }

    /// Returns the plugin with this ID.
    ///
    /// # Errors
    ///
    /// The plugin cannot be loaded. The message is the reason.
    pub(super) async fn get_or_load(&mut self, id: &str) -> Result<Arc<ReplayPlugin>, String> {
        if let Some(loaded) = self.loaded.get(id) {
            return loaded.clone();
        }
        let loaded = self.load(id).await.map(Arc::new);
        self.loaded.entry(id.to_owned()).or_insert(loaded).clone()
    }

    async fn load(&self, id: &str) -> Result<ReplayPlugin, String> {
        let file = match &self.plugin_override {
            Some(instead) if instead.id == id => instead.file.clone(),
            // The name comes from the recording and is not trusted.
            _ if id.is_empty() || id.contains('/') || id.contains('\0') || id.starts_with('.') => {
                return Err(format!(
                    "{:?} is not the name of a plugin",
                    clean_line(id, MAX_REASON_BYTES)
                ));
            }
            _ => self.folder.join(format!("{id}.wasm")),
        };
        let name = printable_path(&file);
        let source =
            read_plugin_source(&file, self.max_file_bytes).map_err(|error| error.to_string())?;
        let digest = source.digest();
        let loaded = load_plugin(&self.sandbox, source, self.rules.clone(), &name)
            .await
            .map_err(|error| error.to_string())?;
        let tools = loaded
            .contents
            .tools
            .into_iter()
            .map(|tool| (tool.tool.name.clone(), tool))
            .collect();
        Ok(ReplayPlugin {
            digest,
            prepared: loaded.prepared,
            tools,
        })
    }
}
