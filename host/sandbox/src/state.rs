//! The data of a store: the guest's WASI context, its limits, and what its host functions work with.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::account::{Account, Held};
use crate::coop::Meter;
use crate::descriptors::{Files, Opened};
use crate::environment::{Entry, Environment};
use crate::http::{FIELDS, Http};
use crate::imports::Imports;
use crate::kept::Kept;
use crate::limiter::Limiter;
use crate::secret::Secrets;
use crate::stdio::Stdio;

/// The data of one store. It lives as long as one call.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    /// The mounted folders with their paths in the guest.
    pub(crate) mounts: Vec<(Dir, String)>,
    /// The files and folders that the call has open.
    pub(crate) files: Files,
    /// Those of handles of `wasi:filesystem`, by their entries in the resource table.
    pub(crate) open_files: BTreeMap<u32, Arc<Opened>>,
    /// Whether a file was not opened because there was no descriptor for it.
    pub(crate) files_refused: bool,
    pub(crate) requests: Http,
    /// What the plugin keeps from one call to the next.
    pub(crate) kept: Kept,
    /// The memory of the call.
    pub(crate) account: Account,
    /// What the handles of `wasi:http` hold of it, by their entries in the resource table.
    pub(crate) http_memory: BTreeMap<u32, Held>,
    pub(crate) limiter: Limiter,
    pub(crate) stdio: Stdio,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) imports: Imports,
}

impl State {
    /// # Errors
    ///
    /// A mounted folder cannot be opened; the text addresses the operator.
    pub(crate) fn new(entry: &Entry<'_>, files: Files, meter: Meter, input: Option<String>) -> Result<Self, String> {
        let Entry { environment, trace, observer, .. } = entry;
        let Environment { limits, permissions, roots, secrets, .. } = environment;
        let mounts = roots.folders()?;
        let account = Account::new(limits.memory);
        let mut stdio = Stdio::new(limits.stdio, account.clone());
        let mut context = WasiCtxBuilder::new();
        if let Some(text) = input {
            context.stdin(MemoryInputPipe::new(text));
            // One byte more than an answer may have: enough to see that it is too large.
            stdio = stdio.keeping(usize::try_from(limits.output.as_u64().saturating_add(1)).unwrap_or(usize::MAX));
        }
        context.stdout(stdio.stdout()).stderr(stdio.stderr()).max_random_size(limits.random.as_u64());
        for name in &permissions.environment {
            if let Ok(value) = std::env::var(name) {
                context.env(name, value);
            }
        }
        if let Some(trace) = trace {
            // How OpenTelemetry passes a trace on to a program: every language can read it.
            context.env("TRACEPARENT", trace.parent());
            for (name, value) in [("TRACESTATE", &trace.state), ("BAGGAGE", &trace.baggage)] {
                if let Some(value) = value {
                    context.env(name, value);
                }
            }
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELDS);
        Ok(Self {
            wasi: context.build(),
            table,
            http,
            mounts,
            files,
            open_files: BTreeMap::new(),
            files_refused: false,
            requests: Http::new(entry),
            kept: Kept::new(entry, account.clone(), meter),
            limiter: Limiter::new(limits, account.clone()),
            account,
            http_memory: BTreeMap::new(),
            stdio,
            secrets: Arc::clone(secrets),
            imports: Imports::new(environment, Arc::clone(observer)),
        })
    }

    /// The resources that the guest has handles of.
    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.requests }
    }
}
