//! Loads in progress.

use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};

use crate::load::load_result::{FallbackVersion, LoadCause, LoadResult};
use crate::load::plugin_loader::PluginLoader;
use crate::publish::plugin_slot::{ActiveLoad, LoadScope, PluginSlot};

/// Loads in progress.
pub(crate) struct LoadTasks {
    loader: Arc<PluginLoader>,
    running: JoinSet<FinishedLoad>,
    tickets: u64,
}

/// Load that has ended.
pub(crate) struct FinishedLoad {
    pub(crate) id: String,
    /// The number of the load.
    pub(crate) ticket: u64,
    pub(crate) result: LoadResult,
}

impl LoadTasks {
    pub(crate) fn new(loader: Arc<PluginLoader>) -> Self {
        Self {
            loader,
            running: JoinSet::new(),
            tickets: 0,
        }
    }

    /// Returns whether nothing is being loaded.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Waits for the end of a load. Returns `None` if there is none.
    pub(crate) async fn join_next(&mut self) -> Option<Result<FinishedLoad, JoinError>> {
        self.running.join_next().await
    }

    /// Starts to load the plugin `id` for this cause. Replaces a load in progress.
    pub(crate) fn start(&mut self, id: &str, slot: &mut PluginSlot, cause: LoadCause) {
        let Some(files) = slot.files.clone() else {
            return;
        };
        slot.settles_at = None;
        let before = slot.previous_version(cause);
        let load = Arc::clone(&self.loader).load_files(id.to_owned(), files, before);
        self.spawn(id, slot, LoadScope::Everything, load);
    }

    /// Starts to load only the plain files of the plugin `id`. Nothing else changed, so no secret
    /// is fetched and no code is read because of a changed text.
    pub(crate) fn start_plain_files(&mut self, id: &str, slot: &mut PluginSlot) {
        let (Some(files), Some(plugin)) = (slot.files.clone(), slot.state.plugin.clone()) else {
            return;
        };
        let remarks = slot.state.remarks.clone();
        let load = Arc::clone(&self.loader).load_plain_files(files, plugin, remarks);
        let load = async {
            match load.await {
                Ok(loaded) => LoadResult::Loaded(loaded),
                Err(error) => LoadResult::Failed(error, FallbackVersion::Unchanged),
            }
        };
        self.spawn(id, slot, LoadScope::PlainFiles, load);
    }

    fn spawn(
        &mut self,
        id: &str,
        slot: &mut PluginSlot,
        scope: LoadScope,
        load: impl Future<Output = LoadResult> + Send + 'static,
    ) {
        slot.abort_load();
        self.tickets += 1;
        let id = id.to_owned();
        let ticket = self.tickets;
        let handle = self.running.spawn(async move {
            FinishedLoad {
                id,
                ticket,
                result: load.await,
            }
        });
        slot.load = Some(ActiveLoad {
            ticket,
            handle,
            scope,
        });
    }
}
