//! Pre-initialization of plugins (`toolbay optimize`): runs the initialization of a plugin once,
//! and writes the resulting state into a new component.
//!
//! All work that grows with the file runs in child processes with limits, like compilation. The
//! first child adds exports that expose the state, the second compiles the result, and the third
//! writes the state into the component. In between, the untrusted code runs in this process like
//! any call, without a grant and within limits. Everything that it learns becomes part of the file,
//! so it must not learn anything about this machine: an import whose result depends on the machine
//! or the time ends the run, unless it is allowed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::time::timeout;
use toolbay_model::text::{clean_line, join_lines};
use toolbay_model::{CallError, Limits, NoopObserver, QuestionKindSet};
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, Instance, Linker, Val, WasmList};
use wasmtime::{Engine, Store};

use crate::cache;
use crate::capability::determinism::CallSeed;
use crate::capability::yielding::drive_cooperatively;
use crate::compile::memory_snapshot::{MemorySnapshot, SnapshotValue, encode};
use crate::compile::preinit::{ACCESS_EXPORT, INITIALIZE_EXPORT};
use crate::compile::source::CompileSource;
use crate::component::contract_interface::ContractInterface;
use crate::component::preamble::check_preamble;
use crate::component::prepare_error::PrepareError;
use crate::context::call_context::{CallContext, PluginContext};
use crate::context::replay_log::ReplayTape;
use crate::prepare::prepared_component::PreparedComponent;
use crate::reply::guest_reply::GuestFailure;
use crate::run::sandbox::Sandbox;
use crate::store::state::{CallResources, StoreState};

/// Maximum length of quoted plugin text, in bytes.
const MAX_QUOTED_BYTES: usize = 300;

/// A capability that the initialization may use only if it is allowed, because the results become
/// part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InitAllowance {
    /// Environment variables, arguments and `[config]`. They are empty.
    Environment,
    /// The directories of mounts. There are none.
    Folders,
    /// Random numbers.
    Random,
    /// Clocks.
    Clocks,
}

/// A call that runs before the state is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// The tool's name, as the plugin lists it.
    pub tool: String,
    /// Its arguments, a JSON object.
    pub arguments: String,
}

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

/// An import that the initialization must not use.
struct ForbiddenImport {
    /// The interface, without its version.
    interface: &'static str,
    /// The functions, or all functions if it is empty. Only for interfaces with a single version in
    /// the linker.
    functions: &'static [&'static str],
    /// The allowance that permits it.
    allowance: Option<InitAllowance>,
    /// The description of its use, for messages.
    does: &'static str,
}

const FORBIDDEN_IMPORTS: [ForbiddenImport; 14] = {
    use InitAllowance::{Clocks, Environment, Folders, Random};
    const fn all(
        interface: &'static str,
        allowance: Option<InitAllowance>,
        does: &'static str,
    ) -> ForbiddenImport {
        ForbiddenImport {
            interface,
            functions: &[],
            allowance,
            does,
        }
    }
    [
        all(
            "wasi:cli/environment",
            Some(Environment),
            "reads environment variables or arguments",
        ),
        all("wasi:config/store", Some(Environment), "reads [config]"),
        ForbiddenImport {
            interface: "toolbay:plugin/host",
            functions: &["config", "config-all"],
            allowance: Some(Environment),
            does: "reads [config]",
        },
        all(
            "wasi:filesystem/preopens",
            Some(Folders),
            "looks for folders",
        ),
        all("wasi:random/random", Some(Random), "draws random numbers"),
        all("wasi:random/insecure", Some(Random), "draws random numbers"),
        all(
            "wasi:random/insecure-seed",
            Some(Random),
            "draws a random seed",
        ),
        all("wasi:clocks/wall-clock", Some(Clocks), "reads the clock"),
        all(
            "wasi:clocks/monotonic-clock",
            Some(Clocks),
            "reads the clock",
        ),
        ForbiddenImport {
            interface: "toolbay:plugin/host",
            functions: &["ask", "resource-updated"],
            allowance: None,
            does: "asks the caller",
        },
        ForbiddenImport {
            interface: "wasi:keyvalue/store",
            functions: &["open"],
            allowance: None,
            does: "opens a store",
        },
        all("wasi:http/outgoing-handler", None, "sends an HTTP request"),
        all("wasi:sockets/instance-network", None, "uses the network"),
        all("wasi:sockets/tcp-create-socket", None, "uses the network"),
    ]
};

impl InitAllowance {
    /// All allowances, with their names on the command line.
    pub const ALL: [(Self, &str); 4] = [
        (Self::Environment, "environment"),
        (Self::Folders, "folders"),
        (Self::Random, "random"),
        (Self::Clocks, "clocks"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == self)
            .map_or("", |(_, name)| name)
    }
}

/// The error with which a forbidden import ends the initialization.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
struct InitFailure(String);

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
        self.compiler()
            .instrument(&job.source, output.try_clone().map_err(unwritten)?)
            .await?;
        let instrumented = CompileSource {
            file: read(&mut output).map_err(unwritten)?,
            wit: String::new(),
        };
        let mut code = cache::create_memory_file().map_err(unwritten)?;
        self.compiler()
            .compile(&instrumented, code.try_clone().map_err(unwritten)?)
            .await?;
        drop(instrumented);
        let (sandbox, job) = (self.clone(), Arc::new(job));
        let opened = tokio::task::spawn_blocking(move || sandbox.open_instrumented(&mut code));
        let ready = opened
            .await
            .unwrap_or_else(|error| Err(PrepareError::Transient(error.to_string())))?;
        let (sandbox, asked) = (self.clone(), Arc::clone(&job));
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
        self.compiler()
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
        // The functions that expose the state are in an additional core module.
        let limits = Limits {
            instances: job.limits.instances.saturating_add(1),
            ..job.limits.clone()
        };
        let environment = PluginContext {
            limits,
            ..PluginContext::default()
        };
        let entry = CallContext {
            tape: ReplayTape::default(),
            environment: &environment,
            caller: None,
            trace: None,
            observer: Arc::new(NoopObserver),
            answerable: QuestionKindSet::default(),
            journal: Arc::default(),
            deadline: Instant::now() + job.limits.timeout,
            place: None,
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
            .enter(prepared, &entry, self.new_call_descriptors(), given)
            .map_err(OptimizeError::Failed)?;
        let exchanges = entered.store.data().exchanges.clone();
        let store = &mut entered.store;
        let began = Instant::now();
        let work = async {
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
            Ok::<_, wasmtime::Error>(InitOutcome {
                image,
                fuel,
                wall,
                ran,
            })
        };
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

fn open_handles_message(held: usize) -> String {
    let handles = if held == 1 {
        "1 handle".to_owned()
    } else {
        format!("{held} handles")
    };
    format!(
        "its initialization keeps {handles} of the host, which no other instance has: close files and streams, and write \
         nothing to standard output or standard error before a tool is called"
    )
}

fn read(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the linker with errors in place of the imports that the initialization must not use.
fn shadow_forbidden_imports(
    linker: &Linker<StoreState>,
    engine: &Engine,
    component: &Component,
    allowed: &BTreeSet<InitAllowance>,
) -> wasmtime::Result<Linker<StoreState>> {
    let mut linker = linker.clone();
    linker.allow_shadowing(true);
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else {
            continue;
        };
        let interface = name.split('@').next().unwrap_or_default();
        for refused in FORBIDDEN_IMPORTS
            .iter()
            .filter(|refused| refused.interface == interface)
        {
            if refused
                .allowance
                .is_some_and(|allowance| allowed.contains(&allowance))
            {
                continue;
            }
            let mut instead = linker.instance(name)?;
            for (function, item) in instance.exports(engine) {
                let concerned =
                    refused.functions.is_empty() || refused.functions.contains(&function);
                if !concerned || !matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                    continue;
                }
                let why = refused.message(&format!("{name}#{function}"));
                instead.func_new(function, move |_, _, _, _| {
                    Err(InitFailure(why.clone()).into())
                })?;
            }
        }
    }
    Ok(linker)
}

impl ForbiddenImport {
    /// Describes the use of the import and the remedy.
    fn message(&self, function: &str) -> String {
        let Self {
            allowance, does, ..
        } = self;
        let first = "do that when a tool is first called";
        let cure = match allowance {
            Some(allowance) => format!("{first}, or allow it with --allow {}", allowance.name()),
            None => first.to_owned(),
        };
        let part = if allowance.is_some() {
            ", and the answer would become part of the file"
        } else {
            ""
        };
        format!("its initialization {does} ({function}){part}: {cure}")
    }
}

/// Runs the initialization function, the list functions and `calls`. Returns their names.
async fn warm_up(
    store: &mut Store<StoreState>,
    instance: &Instance,
    (component, prepared): (&Component, &PreparedComponent),
    calls: &[WarmUp],
) -> wasmtime::Result<Vec<String>> {
    let engine = store.engine().clone();
    let ty = component.component_type();
    let mut ran = Vec::new();
    if let Some(item) = ty.get_export(&engine, INITIALIZE_EXPORT) {
        let ComponentItem::ComponentFunc(ty) = item.ty else {
            return Err(
                InitFailure(format!("its export {INITIALIZE_EXPORT} is not a function")).into(),
            );
        };
        if ty.params().len() + ty.results().len() > 0 {
            let why = format!(
                "its function {INITIALIZE_EXPORT} has parameters or a result; it must have neither"
            );
            return Err(InitFailure(why).into());
        }
        call(store, instance, None, INITIALIZE_EXPORT, &[]).await?;
        ran.push(INITIALIZE_EXPORT.to_owned());
    }
    let mut tools = None;
    for (name, _) in ty.exports(&engine) {
        let lists: &[&str] = match ContractInterface::from_export(name) {
            Some((ContractInterface::Tools, _)) => {
                tools = Some(name.to_owned());
                &["list-tools"]
            }
            Some((ContractInterface::Prompts, _)) => &["list-prompts"],
            Some((ContractInterface::Resources, _)) => {
                &["list-resources", "list-resource-templates"]
            }
            Some((ContractInterface::Completion, _)) | None => &[],
        };
        for list in lists {
            call(store, instance, Some(name), list, &[]).await?;
            ran.push((*list).to_owned());
        }
    }
    for WarmUp { tool, arguments } in calls {
        let failure = match (
            prepared
                .call_function(store, *instance, tool, arguments)
                .await?,
            &tools,
        ) {
            (Some(answer), _) => answer.err().map(GuestFailure::into_text),
            (None, Some(interface)) => {
                let arguments = [Val::String(tool.clone()), Val::String(arguments.clone())];
                let answer =
                    call(store, instance, Some(interface), "call-tool", &arguments).await?;
                match answer {
                    Some(Val::Result(Err(failure))) => {
                        Some(failure_text(failure.map(|failure| *failure)))
                    }
                    _ => None,
                }
            }
            (None, None) => Some("it has no tools that can be called".to_owned()),
        };
        let tool = clean_line(tool, MAX_QUOTED_BYTES);
        if let Some(failure) = failure {
            return Err(InitFailure(format!(
                "the call of {tool} failed: {}",
                clean_line(&failure, MAX_QUOTED_BYTES)
            ))
            .into());
        }
        ran.push(format!("call {tool}"));
    }
    Ok(ran)
}

/// Returns the text of a plugin's failure. Each case of the contract's error has one text.
fn failure_text(failure: Option<Val>) -> String {
    match failure {
        Some(Val::Variant(_, Some(payload))) => failure_text(Some(*payload)),
        Some(Val::String(text)) => text,
        _ => "it states no reason".to_owned(),
    }
}

/// Calls an exported function that returns at most one value.
async fn call(
    store: &mut Store<StoreState>,
    instance: &Instance,
    interface: Option<&str>,
    function: &str,
    arguments: &[Val],
) -> wasmtime::Result<Option<Val>> {
    let missing = || wasmtime::Error::from(InitFailure(format!("it does not export {function}")));
    let within = match interface {
        Some(interface) => Some(
            instance
                .get_export_index(&mut *store, None, interface)
                .ok_or_else(missing)?,
        ),
        None => None,
    };
    let index = instance
        .get_export_index(&mut *store, within.as_ref(), function)
        .ok_or_else(missing)?;
    let function = instance.get_func(&mut *store, index).ok_or_else(missing)?;
    let mut results = vec![Val::Bool(false); function.ty(&*store).results().len()];
    function
        .call_async(&mut *store, arguments, &mut results)
        .await?;
    Ok(results.into_iter().next())
}

/// Reads all memories and globals.
async fn read_state(
    store: &mut Store<StoreState>,
    instance: &Instance,
    component: &Component,
) -> wasmtime::Result<MemorySnapshot> {
    let engine = store.engine().clone();
    let mut image = MemorySnapshot::new();
    let ty = component.component_type();
    let Some(ComponentItem::ComponentInstance(access)) =
        ty.get_export(&engine, ACCESS_EXPORT).map(|item| item.ty)
    else {
        return Ok(image);
    };
    let missing = || wasmtime::Error::from(InitFailure("its state cannot be read".to_owned()));
    let within = instance
        .get_export_index(&mut *store, None, ACCESS_EXPORT)
        .ok_or_else(missing)?;
    for (name, item) in access.exports(&engine) {
        let ComponentItem::ComponentFunc(ty) = item.ty else {
            continue;
        };
        let index = instance
            .get_export_index(&mut *store, Some(&within), name)
            .ok_or_else(missing)?;
        let value = match ty.results().next() {
            Some(Type::S32) => {
                let show = instance.get_typed_func::<(), (i32,)>(&mut *store, index)?;
                SnapshotValue::I32(show.call_async(&mut *store, ()).await?.0)
            }
            Some(Type::S64) => {
                let show = instance.get_typed_func::<(), (i64,)>(&mut *store, index)?;
                SnapshotValue::I64(show.call_async(&mut *store, ()).await?.0)
            }
            Some(Type::Float32) => {
                let show = instance.get_typed_func::<(), (f32,)>(&mut *store, index)?;
                SnapshotValue::F32(show.call_async(&mut *store, ()).await?.0.to_bits())
            }
            Some(Type::Float64) => {
                let show = instance.get_typed_func::<(), (f64,)>(&mut *store, index)?;
                SnapshotValue::F64(show.call_async(&mut *store, ()).await?.0.to_bits())
            }
            Some(Type::List(_)) => {
                let show = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, index)?;
                let (bytes,) = show.call_async(&mut *store, ()).await?;
                SnapshotValue::Memory(bytes.as_le_slice(&*store).to_vec())
            }
            _ => return Err(missing()),
        };
        image.insert(name.to_owned(), value);
    }
    Ok(image)
}
