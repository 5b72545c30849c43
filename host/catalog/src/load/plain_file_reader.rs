//! Reads the plain files of plugins.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use toolbay_model::ByteBudget;

use crate::component::blocking_work::run_blocking;
use crate::component::check_queue::CheckQueue;
use crate::component::load_environment::LoadEnvironment;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::PluginFiles;
use crate::load::load_result::LoadOutcome;
use crate::load::version_check::check_version;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;

/// Reads the plain files of plugins.
pub(crate) struct PlainFileReader {
    environment: LoadEnvironment,
    checks: Arc<CheckQueue>,
    /// Memory budget for the files of skills.
    skill_memory: ByteBudget,
}

impl PlainFileReader {
    pub(crate) fn new(environment: LoadEnvironment, checks: Arc<CheckQueue>) -> Self {
        let limit = environment.rules.current().description_limits.skills;
        Self {
            environment,
            checks,
            skill_memory: ByteBudget::of_size(limit),
        }
    }

    /// Loads the plain files of a plugin whose other files are unchanged. `remarks` are the
    /// warnings about those other files.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub(crate) async fn reload(
        self: &Arc<Self>,
        files: PluginFiles,
        previous: Arc<Plugin>,
        remarks: Vec<String>,
    ) -> Result<LoadOutcome, LoadError> {
        let permit = self.acquire(&files).await;
        let reader = Arc::clone(self);
        run_blocking("reading its plain files", move || {
            let _permit = permit;
            let plain = reader.read(&previous, &files, &previous.files)?;
            let outcome = LoadOutcome {
                plugin: Arc::new(previous.with_files(plain)),
                remarks,
            };
            check_version(reader.environment.lock.rules().as_ref(), outcome)
        })
        .await
    }

    /// Waits for a permit to read plain files, if there are any. Parsing prompts and computing
    /// digests of skills takes CPU time, and any number of folders may change at the same time.
    pub(crate) async fn acquire(&self, files: &PluginFiles) -> Option<OwnedSemaphorePermit> {
        files
            .prompts
            .as_ref()
            .or(files.resources.as_ref())
            .or(files.skill.as_ref())?;
        self.checks.acquire().await
    }

    /// Reads the plain files of a plugin, for a caller that has a permit. Blocks.
    pub(crate) fn read(
        &self,
        plugin: &Plugin,
        files: &PluginFiles,
        previous: &PlainFiles,
    ) -> Result<Arc<PlainFiles>, LoadError> {
        let output = plugin.terms.context.limits.output;
        PlainFiles::load(
            &plugin.id,
            &self.environment.folder,
            files,
            &self.environment.rules.current().description_limits,
            output,
            &self.skill_memory,
            previous,
        )
        .map(Arc::new)
    }
}
