//! Data of a store: the guest's WASI context, its limits, and the state of its host functions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toolbay_model::{ByteReservation, Limit, Limits, TraceContext};
use toolbay_secrets::{CallSecrets as OpenedSecrets, SecretFilter};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::capability::determinism::{CallSeed, CallTime};
use crate::capability::effects::SideEffects;
use crate::capability::files::call_directories::CallDirectories;
use crate::capability::files::descriptors::{CallDescriptors, DescriptorHandle};
use crate::capability::files::directory_reach::DirectoryReach;
use crate::capability::host_functions::HostFunctions;
use crate::capability::http::http_call::HttpCall;
use crate::capability::http::memory_bounds::{EXCHANGE_MEMORY_BYTES, MAX_FIELDS_BYTES};
use crate::capability::http::pending_requests::PendingRequests;
use crate::capability::input_request::QuestionContext;
use crate::capability::keyvalue_call::KeyValueCall;
use crate::capability::memory_budget::{BudgetExceeded, MemoryBudget};
use crate::capability::sockets::call_sockets::CallSockets;
use crate::capability::sockets::tcp_usage::TcpTraffic;
use crate::capability::stdio::guest_stdin::GuestStdin;
use crate::capability::stdio::output_capture::GuestOutput;
use crate::capability::stdio::stdio_transport::StdioTransport;
use crate::capability::yielding::CpuMeter;
use crate::context::call_context::CallContext;
use crate::context::mount_roots::MountedDirectory;
use crate::context::replay_log::ReplayTape;
use crate::context::usage_ledger::CallQuota;
use crate::store::limiter::StoreLimiter;

/// The inputs of a call in addition to its [`CallContext`].
#[derive(Default)]
pub(crate) struct CallResources {
    /// The secrets of the caller.
    pub(crate) secrets: Arc<OpenedSecrets>,
    /// The directories of the call.
    pub(crate) directories: CallDirectories,
    /// Standard input of a guest that returns its result on standard output.
    pub(crate) stdin: Option<String>,
    /// Transport over the standard streams of a guest that is an MCP server.
    pub(crate) stdio_transport: Option<StdioTransport>,
    /// Seed of the clocks and the random numbers, if each call gets the same ones.
    pub(crate) seed: Option<CallSeed>,
    /// True if the guest can ask its caller questions.
    pub(crate) can_ask: bool,
}

/// Data of one store. It lives as long as one call.
pub(crate) struct StoreState {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    /// The mounted directories.
    pub(crate) mounts: Vec<MountedDirectory>,
    /// The first bound of a mounted directory that the call reached.
    pub(crate) exceeded_bound: Arc<OnceLock<Limit>>,
    /// The descriptors for the files and directories that the call has open.
    pub(crate) descriptors: CallDescriptors,
    /// The descriptors of `wasi:filesystem` handles, by their entries in the resource table.
    pub(crate) open_files: BTreeMap<u32, Arc<DescriptorHandle>>,
    /// The quotas of directory handles, by their entries in the resource table.
    pub(crate) quotas: BTreeMap<u32, CallQuota>,
    /// The targets of directory handles, by their entries in the resource table.
    pub(crate) directory_reach: BTreeMap<u32, DirectoryReach>,
    /// True if a file was not opened because no descriptor was left. Such a failure is logged once.
    pub(crate) files_refused: bool,
    pub(crate) outgoing_http: HttpCall,
    /// The HTTP requests that are in progress.
    pub(crate) pending_requests: PendingRequests,
    pub(crate) call_sockets: CallSockets,
    /// The clock of a call with a fixed time; `None` for the system clock.
    pub(crate) fixed_time: Option<CallTime>,
    /// The plugin's persistent state.
    pub(crate) keyvalue: KeyValueCall,
    /// The memory budget of the call.
    pub(crate) memory_budget: MemoryBudget,
    /// Memory that the handles of `wasi:http` hold, by their entries in the resource table.
    pub(crate) http_memory: BTreeMap<u32, ByteReservation>,
    pub(crate) limiter: StoreLimiter,
    pub(crate) stdio: GuestOutput,
    /// Standard input, for WASI 0.3.
    pub(crate) input: GuestStdin,
    /// Transport over the standard streams, if the guest is an MCP server.
    pub(crate) stdio_transport: Option<StdioTransport>,
    pub(crate) secrets: Arc<SecretFilter>,
    pub(crate) imports: HostFunctions,
    /// The call's side effects.
    pub(crate) effects: SideEffects,
    pub(crate) tape: ReplayTape,
    /// True if the call has mounted directories, or had them when it was recorded.
    pub(crate) has_mounts: bool,
    pub(crate) question_context: QuestionContext,
}

impl StoreState {
    /// Creates the state of a call with these resources.
    pub(crate) fn new(
        call: &CallContext<'_>,
        resources: CallResources,
        files: CallDescriptors,
        meter: CpuMeter,
    ) -> Self {
        let CallContext {
            environment,
            observer,
            deadline,
            tape,
            ..
        } = call;
        let limits = &environment.limits;
        let secrets = Arc::clone(&resources.secrets.filter);
        tape.set_secrets(&secrets);
        let memory_budget = MemoryBudget::new(limits.memory);
        let effects = SideEffects::new(
            resources.can_ask,
            &call.journal,
            limits,
            &memory_budget,
            tape.clone(),
        );
        let mut context = WasiCtxBuilder::new();
        let stdio_transport = resources.stdio_transport;
        let (stdio, input) = connect_streams(
            &mut context,
            limits,
            &memory_budget,
            resources.stdin,
            stdio_transport.as_ref(),
        );
        context.max_random_size(limits.random.as_u64());
        let fixed_time = set_variables(&mut context, call, resources.seed);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_FIELDS_BYTES);
        let outgoing_http = HttpCall::new(call, resources.secrets, effects.clone());
        let call_sockets = CallSockets::new(
            &environment.connections,
            outgoing_http.denials(),
            effects.clone(),
            TcpTraffic::new(limits),
            memory_budget.clone(),
            *deadline,
        );
        allow_connections(&mut context, &call_sockets);
        Self {
            wasi: context.build(),
            table,
            http,
            mounts: resources.directories.mounted,
            exceeded_bound: resources.directories.exceeded_quota,
            descriptors: files,
            open_files: BTreeMap::new(),
            quotas: BTreeMap::new(),
            directory_reach: BTreeMap::new(),
            files_refused: false,
            outgoing_http,
            pending_requests: PendingRequests::default(),
            call_sockets,
            fixed_time,
            keyvalue: KeyValueCall::new(call, memory_budget.clone(), meter),
            limiter: StoreLimiter::new(limits, memory_budget.clone()),
            memory_budget,
            http_memory: BTreeMap::new(),
            stdio,
            input,
            stdio_transport,
            imports: HostFunctions::new(
                environment,
                Arc::clone(&secrets),
                Arc::clone(observer),
                tape.clone(),
            ),
            question_context: QuestionContext::new(
                call.answerable,
                Arc::clone(&call.journal),
                effects.clone(),
                Arc::clone(&secrets),
                limits,
            ),
            secrets,
            effects,
            tape: tape.clone(),
            has_mounts: tape
                .recorded_mounts()
                .unwrap_or(!environment.permissions.mounts.is_empty()),
        }
    }

    /// Returns the table of the resources that the guest has handles of.
    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }

    /// Reserves the memory of a request in flight, if any request can be sent.
    pub(crate) fn reserve_for_request(&self) -> Result<Option<ByteReservation>, BudgetExceeded> {
        if !self.outgoing_http.allows_requests() {
            return Ok(None);
        }
        self.memory_budget.reserve(EXCHANGE_MEMORY_BYTES).map(Some)
    }

    /// Charges the memory of a new handle of `wasi:http` to the call's budget until the handle is
    /// dropped or consumed.
    pub(crate) fn reserve_for_handle<T>(
        &mut self,
        handle: Resource<T>,
        bytes: usize,
    ) -> Result<Resource<T>, BudgetExceeded> {
        self.http_memory
            .insert(handle.rep(), self.memory_budget.reserve(bytes)?);
        Ok(handle)
    }
}

/// Connects the standard streams of a guest. `text` is its input if it returns its result on
/// standard output, and `transport` is its transport if it is an MCP server.
fn connect_streams(
    context: &mut WasiCtxBuilder,
    limits: &Limits,
    memory_budget: &MemoryBudget,
    text: Option<String>,
    transport: Option<&StdioTransport>,
) -> (GuestOutput, GuestStdin) {
    let mut stdio = GuestOutput::new(limits.stdio, memory_budget.clone());
    let mut input = transport.map_or(GuestStdin::Empty, |talk| {
        GuestStdin::Messages(talk.reader())
    });
    if let Some(text) = text {
        let text = MemoryInputPipe::new(text);
        input = GuestStdin::Text(text.clone());
        context.stdin(text);
        // One byte more than the output limit is enough to detect output that is too large.
        stdio = stdio.with_stdout_limit(
            usize::try_from(limits.output.as_u64().saturating_add(1)).unwrap_or(usize::MAX),
        );
    }
    match transport {
        Some(transport) => context
            .stdin(transport.stdin())
            .stdout(transport.stdout(stdio.stdout())),
        None => context.stdout(stdio.stdout()),
    };
    context.stderr(stdio.stderr());
    (stdio, input)
}

/// Sets the environment variables, and the clocks and random numbers if they do not come from the
/// system. Returns the fixed time of a deterministic call.
fn set_variables(
    context: &mut WasiCtxBuilder,
    call: &CallContext<'_>,
    seed: Option<CallSeed>,
) -> Option<CallTime> {
    let tape = &call.tape;
    for name in &call.environment.permissions.environment {
        if let Some(value) = tape.variable(name, || std::env::var(name).ok()) {
            context.env(name, value);
        }
    }
    let time = seed.map(|seed| seed.apply(context));
    if time.is_none() {
        tape.configure_wasi(context);
    }
    // The trace context differs between calls.
    let trace = call
        .trace
        .filter(|_| time.is_none())
        .map(trace_variables)
        .unwrap_or_default();
    for (name, value) in tape.trace_variables(trace) {
        context.env(name, value);
    }
    time
}

/// Allows the connections that the rules of the call allow.
fn allow_connections(context: &mut WasiCtxBuilder, sockets: &CallSockets) {
    let gate = sockets.gate();
    context
        .allow_tcp(true)
        .socket_addr_check(move |address, purpose| {
            let is_allowed = gate.allows(address, purpose);
            Box::pin(async move { is_allowed })
        });
}

/// Returns the trace context as environment variables, the OpenTelemetry convention for programs in
/// any language.
fn trace_variables(trace: &TraceContext) -> Vec<(&'static str, String)> {
    let others = [("TRACESTATE", &trace.state), ("BAGGAGE", &trace.baggage)];
    let others = others
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)));
    [("TRACEPARENT", trace.traceparent())]
        .into_iter()
        .chain(others)
        .collect()
}

impl WasiView for StoreState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for StoreState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.outgoing_http,
        }
    }
}
