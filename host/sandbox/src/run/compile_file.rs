//! Compiles and links plugin files.

use std::time::Instant;

use tempfile::NamedTempFile;
use toolbay_model::text::join_lines;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache;
use crate::compile::compile_counts::CompileCounts;
use crate::compile::compiler_process::WorkerNotes;
use crate::compile::source::CompileSource;
use crate::component::preamble::check_preamble;
use crate::component::prepare_error::PrepareError;
use crate::prepare::compiled::{CompiledFile, UncachedCode};
use crate::prepare::engine_pair::LinkedEngine;
use crate::prepare::prepared_component::PreparedComponent;
use crate::run::sandbox::Sandbox;
use crate::store::error;

impl Sandbox {
    /// Compiles and links a plugin file within the limits. Dropping the future stops the compiler.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file is not a valid plugin.
    pub async fn compile(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        let began = Instant::now();
        let compiled = self.compile_and_link(source).await;
        self.inner
            .compilations
            .record_compilation(began.elapsed(), compiled.is_ok());
        compiled
    }

    /// Returns how many components were compiled, and how many were found in the cache.
    pub fn compile_counts(&self) -> CompileCounts {
        self.inner.compilations.snapshot()
    }

    async fn compile_and_link(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        check_preamble(&source.file)?;
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self.cache().and_then(|cache| cache.create_temporary().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let code = scratch
                        .as_file()
                        .try_clone()
                        .map_err(|_| PrepareError::WriteFailed)?;
                    let prepared = self
                        .open_on_blocking_thread(notes.tasked, move |engine| {
                            cache::open_file(engine, &code)
                        })
                        .await?;
                    return Ok(assemble(prepared, notes, Some(scratch)));
                }
                // The component is usable even if it cannot be cached.
                Err(PrepareError::WriteFailed) => tracing::warn!(
                    "cannot write to the compile cache: the disk is full, or files are limited in size (ulimit -f)"
                ),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::WriteFailed;
        let mut code = cache::create_memory_file().map_err(unwritten)?;
        let notes = compiler
            .compile(&source, code.try_clone().map_err(unwritten)?)
            .await?;
        let prepared = self
            .open_on_blocking_thread(notes.tasked, move |engine| {
                cache::open_from_memory(engine, &mut code)
            })
            .await?;
        Ok(assemble(prepared, notes, None))
    }

    /// Opens and links compiled code on a blocking thread: both steps take time in proportion to
    /// the size of the component.
    async fn open_on_blocking_thread(
        &self,
        tasked: Option<u32>,
        open: impl FnOnce(&Engine) -> wasmtime::Result<Component> + Send + 'static,
    ) -> Result<PreparedComponent, PrepareError> {
        let sandbox = self.clone();
        let work = move || {
            let linked: &LinkedEngine = sandbox
                .inner
                .engines
                .engine_for(tasked)
                .map_err(PrepareError::Transient)?;
            let component = open(&linked.engine).map_err(|error| {
                let root = join_lines(&error.root_cause().to_string());
                match error::describe_too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("invalid component: {root}")),
                }
            })?;
            let prepared = PreparedComponent::new(linked, &component, tasked)?;
            match sandbox.initial_memory_error(&prepared) {
                Some(why) => Err(PrepareError::TooLarge(why)),
                None => Ok(prepared),
            }
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(prepared) => prepared,
            Err(error) => Err(PrepareError::Transient(format!(
                "opening its compiled code failed: {error}"
            ))),
        }
    }
}

fn assemble(
    prepared: PreparedComponent,
    notes: WorkerNotes,
    code: Option<NamedTempFile>,
) -> CompiledFile {
    let WorkerNotes {
        docs,
        remarks,
        about,
        speaks: speaks_mcp,
        tasked: async_instances,
    } = notes;
    CompiledFile {
        prepared,
        docs,
        remarks,
        about,
        may_be_mcp_server: speaks_mcp,
        uncached_code: UncachedCode {
            code,
            async_instances,
        },
    }
}
