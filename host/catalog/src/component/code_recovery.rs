//! Opens stored code, and recompiles components whose stored code can no longer be used.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::{OpenedCode, PreparedComponent, UncachedCode, UnopenedCode};

use crate::component::blocking_work::run_blocking;
use crate::component::component_compiler::ComponentCompiler;
use crate::component::load_environment::LoadEnvironment;
use crate::component::refusal_cache::RefusalCache;
use crate::component::source_reader::{ReadSource, SourceReader, read_again};
use crate::folder::load_error::LoadError;

/// Opens stored code, and recompiles components whose stored code can no longer be used.
pub(crate) struct CodeRecovery {
    pub(crate) environment: LoadEnvironment,
    pub(crate) sources: Arc<SourceReader>,
    pub(crate) compiler: Arc<ComponentCompiler>,
    pub(crate) refusals: Arc<RefusalCache>,
}

impl CodeRecovery {
    /// Opens the stored code of the plugin `id`, or recompiles its component and stores the result.
    ///
    /// # Errors
    ///
    /// The reason why neither is possible.
    pub(crate) async fn open(
        &self,
        id: &str,
        code: UnopenedCode,
    ) -> Result<PreparedComponent, String> {
        let sandbox = &self.environment.sandbox;
        match sandbox.open_code(code).await? {
            OpenedCode::Open(prepared) => Ok(*prepared),
            OpenedCode::Lost(lost) => {
                let (prepared, uncached_code) = self
                    .recompile(id, lost.digest())
                    .await
                    .map_err(|error| error.reason().to_owned())?;
                sandbox
                    .replace_lost_code(lost, prepared, uncached_code)
                    .await
            }
        }
    }

    /// Recompiles the component of the plugin `id`, whose stored code can no longer be used.
    async fn recompile(
        &self,
        id: &str,
        digest: Digest,
    ) -> Result<(PreparedComponent, UncachedCode), LoadError> {
        let _permit = self.sources.acquire().await;
        let environment = self.environment.clone();
        let owned_id = id.to_owned();
        let ReadSource {
            digest: current_digest,
            source,
        } = run_blocking("reading it", move || read_again(&environment, &owned_id)).await?;
        if current_digest != digest {
            return Err(LoadError::Transient(
                "its file has changed, and the new version is not loaded yet".to_owned(),
            ));
        }
        if let Some(why) = self.refusals.find(digest) {
            return Err(LoadError::Refused(why));
        }
        let permits = self.compiler.queue.acquire(source.file.len(), false).await;
        let compiled = self.compiler.compile(id, source).await;
        drop(permits);
        match compiled {
            Ok(compiled) => {
                let (prepared, uncached_code, _about) = compiled.into_parts();
                Ok((prepared, uncached_code))
            }
            Err(failed) => Err(self.refusals.record_failure(digest, failed).await),
        }
    }
}
