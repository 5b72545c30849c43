//! Compiles, describes and checks components.

use std::sync::Arc;

use tokio::sync::SemaphorePermit;
use toolbay_model::Digest;
use toolbay_sandbox::{CompileSource, CompiledFile, RawDescription};

use crate::component::check_queue::CheckQueue;
use crate::component::compile_queue::CompilePermits;
use crate::component::component_compiler::ComponentCompiler;
use crate::component::component_lookup::KnownComponent;
use crate::component::component_registry::ComponentRegistry;
use crate::component::failed_step::FailedStep;
use crate::component::load_environment::LoadEnvironment;
use crate::component::loaded_component::LoadedComponent;
use crate::component::refusal_cache::RefusalCache;
use crate::component::source_reader::ReadSource;
use crate::definition::component_contents::ComponentContents;
use crate::folder::load_error::LoadError;
use crate::load::plugin_reader::{ComponentInput, LoadContext, PluginReader};

/// Compiles, describes and checks components.
pub(crate) struct ComponentBuilder {
    pub(crate) environment: LoadEnvironment,
    pub(crate) reader: Arc<PluginReader>,
    pub(crate) compiler: Arc<ComponentCompiler>,
    pub(crate) checks: Arc<CheckQueue>,
    pub(crate) registry: Arc<ComponentRegistry>,
    pub(crate) refusals: Arc<RefusalCache>,
}

/// Compiled component, and what it says that it offers.
struct DescribedComponent {
    compiled: CompiledFile,
    listed: RawDescription,
}

impl ComponentBuilder {
    /// Returns the checked component of the plugin `id`. Compiles it if it is unknown, and then
    /// releases `reading`, the permit under which its file was read.
    pub(crate) async fn build(
        &self,
        id: &str,
        digest: Digest,
        component: ComponentInput,
        reading: Option<SemaphorePermit<'_>>,
        is_retry: bool,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        match component {
            ComponentInput::Known(known) => self.check_known(digest, known).await,
            // Boxed to keep this future small: thousands of loads that find a stored component wait
            // for their turn.
            ComponentInput::New(source) => {
                let source = ReadSource { digest, source };
                Box::pin(self.compile_in_turn(id, source, reading, is_retry)).await
            }
        }
    }

    /// Returns a component that is compiled already. Checks its description if that has not been
    /// done yet.
    pub(crate) async fn check_known(
        &self,
        digest: Digest,
        component: KnownComponent,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        let stored = match component {
            KnownComponent::Ready(component) => return Ok(component),
            KnownComponent::Unchecked(stored) => stored,
        };
        let rules = Arc::clone(&self.environment.rules);
        let checked = self
            .checks
            .run_check(move || stored.check(&rules.current().description_limits))
            .await;
        let component = checked.map_err(|error| self.refusals.record(digest, error))?;
        Ok(self.registry.intern(component))
    }

    /// Compiles and describes a component when it gets its permits. If it has to wait, it releases
    /// `reading` and the file's memory, and reads the file again afterwards.
    async fn compile_in_turn(
        &self,
        id: &str,
        ReadSource { digest, source }: ReadSource,
        reading: Option<SemaphorePermit<'_>>,
        is_retry: bool,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        let queue = &self.compiler.queue;
        if let Some(permits) = queue.try_acquire(source.file.len(), is_retry) {
            drop(reading);
            return self.compile_and_describe(id, digest, source, permits).await;
        }
        let length = source.file.len();
        drop((source, reading));
        let permits = queue.acquire(length, is_retry).await;
        // Another load may have compiled it in the meantime, and the file may be another one.
        let read = self.reader.read(id, LoadContext::default(), None).await?;
        match read.component {
            ComponentInput::Known(known) => self.check_known(read.digest, known).await,
            // The next scan finds that it has changed.
            ComponentInput::New(source) if !permits.allow(source.file.len()) => {
                Err(LoadError::Gone)
            }
            ComponentInput::New(source) => {
                self.compile_and_describe(id, read.digest, source, permits)
                    .await
            }
        }
    }

    /// Compiles a component and requests its description.
    async fn compile_and_describe(
        &self,
        id: &str,
        digest: Digest,
        source: CompileSource,
        permits: CompilePermits<'_>,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        let compiled = self.compiler.compile(id, source).await;
        let _retrying = permits.end_compilation();
        let compiled = self.finish_step(digest, compiled).await?;
        let described = self.describe(compiled).await;
        let described = self.finish_step(digest, described).await?;
        let environment = self.environment.clone();
        let checked = self
            .checks
            .run_check(move || described.check_and_store(&environment, digest))
            .await
            .map_err(FailedStep::of_check);
        let component = self.finish_step(digest, checked).await?;
        Ok(self.registry.intern(component))
    }

    /// Requests the plugin's description, on the guest runtime.
    async fn describe(&self, compiled: CompiledFile) -> Result<DescribedComponent, FailedStep> {
        let sandbox = self.environment.sandbox.clone();
        let limits = self.environment.rules.current().describe_limits.clone();
        let described = self.environment.sandbox.spawn(async move {
            let finished = sandbox.describe(&compiled, &limits).await;
            let listed = finished
                .result
                .map_err(|error| FailedStep::of_description(&error))?;
            match listed.refusal_reason() {
                Some(why) => Err(FailedStep::of_check(LoadError::Refused(why.to_owned()))),
                None => Ok(DescribedComponent { compiled, listed }),
            }
        });
        described.await.unwrap_or_else(|error| {
            Err(FailedStep::of_check(LoadError::Transient(format!(
                "listing what it offers failed: {error}"
            ))))
        })
    }

    /// Caches a failed step, so that it is not repeated.
    async fn finish_step<T>(
        &self,
        digest: Digest,
        result: Result<T, FailedStep>,
    ) -> Result<T, LoadError> {
        match result {
            Ok(done) => Ok(done),
            Err(failed) => Err(self.refusals.record_failure(digest, failed).await),
        }
    }
}

impl DescribedComponent {
    /// Checks the description, and adds the component to the compile cache. Blocks.
    ///
    /// # Errors
    ///
    /// The reason why the component is refused.
    fn check_and_store(
        mut self,
        environment: &LoadEnvironment,
        digest: Digest,
    ) -> Result<LoadedComponent, String> {
        let mut description = self.compiled.description(self.listed);
        environment
            .rules
            .current()
            .description_limits
            .check(&description)?;
        let contents = ComponentContents::validate_or_leave_out(&mut description)?;
        let (prepared, scratch, about) = self.compiled.into_parts();
        let remarks = description.remarks.clone();
        let purpose = about.description.clone();
        let imports = about.imports.clone().into();
        let made_with = about.made_with.clone();
        environment
            .sandbox
            .add_to_cache(digest, scratch, &prepared, description, about);
        Ok(LoadedComponent {
            digest,
            code: Some(Arc::new(prepared.into())),
            contents,
            about: purpose,
            imports,
            made_with,
            remarks,
        })
    }
}
