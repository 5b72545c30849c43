//! Pre-initialization of plugins (`toolbay optimize`): runs the initialization of a plugin once,
//! and writes the resulting state into a new component.
//!
//! All work that grows with the file runs in child processes with limits, like compilation. The
//! first child adds exports that expose the state, the second compiles the result, and the third
//! writes the state into the component. In between, the untrusted code runs in this process like
//! any call, without a grant and within limits. Everything that it learns becomes part of the file,
//! so it must not learn anything about this machine: an import whose result depends on the machine
//! or the time ends the run, unless it is allowed.

mod forbidden_imports;
mod init_failure;
mod state_reader;
mod warm_up;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::time::timeout;
use toolbay_model::text::join_lines;
use toolbay_model::{CallError, Limits, NoopObserver, QuestionKindSet};
use wasmtime::Store;
use wasmtime::component::{Component, InstancePre};

pub use self::forbidden_imports::InitAllowance;
use self::forbidden_imports::shadow_forbidden_imports;
use self::init_failure::InitFailure;
use self::state_reader::read_state;
pub use self::warm_up::WarmUp;
use self::warm_up::warm_up;
use crate::cache;
use crate::capability::determinism::CallSeed;
use crate::capability::yielding::drive_cooperatively;
use crate::compile::memory_snapshot::{MemorySnapshot, encode};
use crate::compile::source::CompileSource;
use crate::component::preamble::check_preamble;
use crate::component::prepare_error::PrepareError;
use crate::context::call_context::{CallContext, PluginContext};
use crate::context::replay_log::ReplayTape;
use crate::prepare::prepared_component::PreparedComponent;
use crate::run::sandbox::Sandbox;
use crate::store::state::{CallResources, StoreState};

/// The input of [`Sandbox::optimize`].
#[derive(Clone, Debug, Default)]
pub struct OptimizeJob {
    /// The plugin file.
    pub source: CompileSource,
    /// The limits of the whole initialization.
    pub limits: Limits,
    /// The capabilities that it may use.
    pub allowed: BTreeSet<InitAllowance>,
    /// The calls to make after the initialization.
    pub calls: Vec<WarmUp>,
}

/// An optimized component, and the cost of its initialization.
#[derive(Clone, Debug)]
pub struct OptimizedComponent {
    /// The component.
    pub file: Vec<u8>,
    /// The consumed fuel.
    pub fuel: u64,
    /// The wall-clock time.
    pub wall: Duration,
    /// The functions and calls that ran.
    pub ran: Vec<String>,
}

/// The reason why a component cannot be optimized.
#[derive(Debug, Error)]
pub enum OptimizeError {
    /// It cannot be compiled, or its state cannot become part of a file.
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    /// Its initialization uses something that is not allowed.
    #[error("{0}")]
    Unfit(String),
    /// Its initialization failed.
    #[error("its initialization failed: {0}")]
    Failed(CallError),
}

/// The state of an initialized instance, and the cost of its initialization.
struct InitOutcome {
    image: MemorySnapshot,
    fuel: u64,
    wall: Duration,
    ran: Vec<String>,
}

impl Sandbox {
    /// Runs the initialization of a plugin file and writes the resulting state into a new
    /// component. Dropping the future stops it.
    ///
    /// # Errors
    ///
    /// Returns the reason why the component cannot be optimized, with advice.
    pub async fn optimize(&self, job: OptimizeJob) -> Result<OptimizedComponent, OptimizeError> {
        check_preamble(&job.source.file)?;
        let unwritten = |_| PrepareError::WriteFailed;
        let mut output = cache::create_memory_file().map_err(unwritten)?;
        self.inner
            .compiler
            .instrument(&job.source, output.try_clone().map_err(unwritten)?)
            .await?;
        let instrumented = CompileSource {
            file: read(&mut output).map_err(unwritten)?,
            wit: String::new(),
        };
        let mut code = cache::create_memory_file().map_err(unwritten)?;
        self.inner
            .compiler
            .compile(&instrumented, code.try_clone().map_err(unwritten)?)
            .await?;
        drop(instrumented);
        let sandbox = self.clone();
        let job = Arc::new(job);
        let opened = tokio::task::spawn_blocking(move || sandbox.open_instrumented(&mut code));
        let ready = opened
            .await
            .unwrap_or_else(|error| Err(PrepareError::Transient(error.to_string())))?;
        let sandbox = self.clone();
        let asked = Arc::clone(&job);
        let run = self.spawn(async move { sandbox.run_initialization(&ready, &asked).await });
        let left = run
            .await
            .map_err(|error| OptimizeError::Failed(CallError::Internal(error.to_string())))??;
        let InitOutcome {
            image,
            fuel,
            wall,
            ran,
        } = left;
        let mut output = cache::create_memory_file().map_err(unwritten)?;
        self.inner
            .compiler
            .snapshot(
                &job.source,
                encode(&image),
                output.try_clone().map_err(unwritten)?,
            )
            .await?;
        let file = read(&mut output).map_err(unwritten)?;
        Ok(OptimizedComponent {
            file,
            fuel,
            wall,
            ran,
        })
    }

    /// Opens the component whose exports expose its state.
    fn open_instrumented(
        &self,
        code: &mut File,
    ) -> Result<(Component, PreparedComponent), PrepareError> {
        let linked = self.engines().sync_engine();
        let invalid = |error: wasmtime::Error| {
            PrepareError::Invalid(format!(
                "invalid component: {}",
                join_lines(&error.root_cause().to_string())
            ))
        };
        let component = cache::open_from_memory(&linked.engine, code).map_err(invalid)?;
        let prepared = PreparedComponent::new(linked, &component, None)?;
        Ok((component, prepared))
    }

    /// Runs the initialization. Must run on the guest runtime.
    async fn run_initialization(
        &self,
        (component, prepared): &(Component, PreparedComponent),
        job: &OptimizeJob,
    ) -> Result<InitOutcome, OptimizeError> {
        let ordinary = self.engines().sync_engine();
        let linker =
            shadow_forbidden_imports(&ordinary.linker, &ordinary.engine, component, &job.allowed)
                .map_err(|error| PrepareError::Link(join_lines(&format!("{error:#}"))))?;
        let pre = linker
            .instantiate_pre(component)
            .map_err(|error| PrepareError::Link(join_lines(&format!("{error:#}"))))?;
        let environment = job.plugin_context();
        let entry = CallContext {
            tape: ReplayTape::default(),
            environment: &environment,
            caller: None,
            trace: None,
            observer: Arc::new(NoopObserver),
            answerable: QuestionKindSet::default(),
            journal: Arc::default(),
            deadline: Instant::now() + job.limits.timeout,
            compute_permit: None,
        };
        // A fixed seed makes the output reproducible.
        let seed = Some(CallSeed::for_file(
            job.source.digest().to_string().as_bytes(),
        ));
        let given = CallResources {
            seed,
            ..CallResources::default()
        };
        let mut entered = self
            .enter(prepared, &entry, self.inner.descriptors.start_call(), given)
            .map_err(OptimizeError::Failed)?;
        let exchanges = entered.store.data().pending_requests.clone();
        let work = initialize(&mut entered.store, &pre, (component, prepared), job);
        let answer = timeout(
            job.limits.timeout,
            drive_cooperatively(entered.meter.clone(), exchanges, None, work),
        )
        .await;
        if let Ok(Err(error)) = &answer
            && let Some(InitFailure(why)) = error.downcast_ref()
        {
            return Err(OptimizeError::Unfit(why.clone()));
        }
        entered
            .finish(answer, Ok)
            .result
            .map_err(OptimizeError::Failed)
    }
}

impl OptimizeJob {
    /// Returns the context of the initialization, which has no grant.
    fn plugin_context(&self) -> PluginContext {
        // The functions that expose the state are in an additional core module.
        let limits = Limits {
            instances: self.limits.instances.saturating_add(1),
            ..self.limits.clone()
        };
        PluginContext {
            limits,
            ..PluginContext::default()
        }
    }
}

/// Instantiates a component, runs its initialization, and reads its state.
async fn initialize(
    store: &mut Store<StoreState>,
    pre: &InstancePre<StoreState>,
    (component, prepared): (&Component, &PreparedComponent),
    job: &OptimizeJob,
) -> wasmtime::Result<InitOutcome> {
    let began = Instant::now();
    let instance = pre.instantiate_async(&mut *store).await?;
    let ran = warm_up(store, &instance, (component, prepared), &job.calls).await?;
    let fuel = job.limits.fuel.saturating_sub(store.get_fuel()?);
    let wall = began.elapsed();
    let held = store.data_mut().table().iter_mut().count();
    if held > 0 {
        return Err(InitFailure(open_handles_message(held)).into());
    }
    // The guest does not pay for reading its state.
    store.set_hostcall_fuel(usize::MAX);
    store.set_fuel(job.limits.fuel)?;
    let image = read_state(store, &instance, component).await?;
    Ok(InitOutcome {
        image,
        fuel,
        wall,
        ran,
    })
}

fn open_handles_message(held: usize) -> String {
    let handles = if held == 1 {
        "1 handle".to_owned()
    } else {
        format!("{held} handles")
    };
    format!(
        "its initialization leaves {handles} of the host open, which a new instance would not have: close files and streams, and write \
         nothing to standard output or standard error before a tool is called"
    )
}

fn read(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
