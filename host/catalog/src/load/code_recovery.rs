//! Recompiles components whose stored code can no longer be used.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::{PreparedComponent, Recompile, RecompileFuture, UncachedCode};

use crate::load::blocking_work::run_blocking;
use crate::load::component_compiler::ComponentCompiler;
use crate::load::load_environment::LoadEnvironment;
use crate::load::refusal_cache::RefusalCache;
use crate::load::source_reader::{ReadSource, SourceReader, read_again};
use crate::load_error::LoadError;

/// Recompiles components whose stored code can no longer be used.
pub(crate) struct CodeRecovery {
    pub(crate) environment: LoadEnvironment,
    pub(crate) sources: Arc<SourceReader>,
    pub(crate) compiler: Arc<ComponentCompiler>,
    pub(crate) refusals: Arc<RefusalCache>,
}

impl CodeRecovery {
    /// Recompiles the component of the plugin `id`, whose stored code can no longer be used.
    async fn recompile(
        &self,
        id: &str,
        digest: Digest,
    ) -> Result<(PreparedComponent, UncachedCode), LoadError> {
        let _reading = self.sources.acquire().await;
        let (environment, owned_id) = (self.environment.clone(), id.to_owned());
        let ReadSource {
            digest: found,
            source,
        } = run_blocking("reading it", move || read_again(&environment, &owned_id)).await?;
        if found != digest {
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
                let (prepared, scratch, _about) = compiled.into_parts();
                Ok((prepared, scratch))
            }
            Err(failed) => Err(self.refusals.record_failure(digest, failed).await),
        }
    }
}

/// Origin of a stored component, from which it can be recompiled.
pub(crate) struct ComponentOrigin {
    pub(crate) recovery: Arc<CodeRecovery>,
    pub(crate) id: String,
}

impl Recompile for ComponentOrigin {
    fn recompile(&self, digest: Digest) -> RecompileFuture {
        let (recovery, id) = (Arc::clone(&self.recovery), self.id.clone());
        Box::pin(async move {
            recovery
                .recompile(&id, digest)
                .await
                .map_err(|error| error.reason().to_owned())
        })
    }
}
