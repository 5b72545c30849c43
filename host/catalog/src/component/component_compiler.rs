//! Compiles components.

use std::time::Duration;

use bytesize::ByteSize;
use toolbay_sandbox::{CompileSource, CompiledFile};

use crate::component::compile_queue::CompileQueue;
use crate::component::failed_step::FailedStep;
use crate::component::load_environment::LoadEnvironment;

/// Compile time after which a compilation is logged.
const LONG_COMPILE_THRESHOLD: Duration = Duration::from_secs(1);

/// Compiles components, for callers that have the permits of its queue.
pub(crate) struct ComponentCompiler {
    environment: LoadEnvironment,
    pub(crate) queue: CompileQueue,
}

impl ComponentCompiler {
    pub(crate) fn new(environment: LoadEnvironment) -> Self {
        Self {
            environment,
            queue: CompileQueue::new(),
        }
    }

    /// Compiles the component of the plugin `id`.
    pub(crate) async fn compile(
        &self,
        id: &str,
        source: CompileSource,
    ) -> Result<CompiledFile, FailedStep> {
        let size = ByteSize::b(source.file.len() as u64).display().iec();
        let mut compiling = std::pin::pin!(self.environment.sandbox.compile(source));
        let compiled = match tokio::time::timeout(LONG_COMPILE_THRESHOLD, compiling.as_mut()).await
        {
            Ok(compiled) => compiled,
            Err(_elapsed) => {
                tracing::info!(plugin = id, %size, "compiling; this can take minutes for a large plugin");
                compiling.await
            }
        };
        compiled.map_err(FailedStep::of_compilation)
    }
}
