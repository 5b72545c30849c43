//! The data of a store: the guest's WASI context, its limits, and what its host functions work with.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toolbay_model::Limit;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::account::{Account, Held};
use crate::descriptors::{Files, Handle};
use crate::environment::{Entry, Environment};
use crate::http::{FIELDS, Http};
use crate::imports::Imports;
use crate::ledger::Quota;
use crate::limiter::Limiter;
use crate::roots::Mounted;
use crate::secret::Secrets;
use crate::stdio::Stdio;

/// The data of one store. It lives as long as one call.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    /// The mounted folders.
    pub(crate) mounts: Vec<Mounted>,
    /// The first bound of a mounted folder that the call reached.
    pub(crate) full: Arc<OnceLock<Limit>>,
    /// The files and folders that the call has open.
    pub(crate) files: Files,
    /// Those of handles of `wasi:filesystem`, by their entries in the resource table.
    pub(crate) open_files: BTreeMap<u32, Arc<Handle>>,
    /// What bounds the folders of handles, by their entries in the resource table.
    pub(crate) quotas: BTreeMap<u32, Quota>,
    /// Whether a file was not opened because there was no descriptor for it.
    pub(crate) files_refused: bool,
    pub(crate) requests: Http,
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
    /// The state of a call with these folders.
    pub(crate) fn new(
        entry: &Entry<'_>,
        files: Files,
        mounts: Vec<Mounted>,
        full: Arc<OnceLock<Limit>>,
        input: Option<String>,
    ) -> Self {
        let Entry { environment, trace, observer, .. } = entry;
        let Environment { limits, permissions, secrets, .. } = environment;
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
        Self {
            wasi: context.build(),
            table,
            http,
            mounts,
            full,
            files,
            open_files: BTreeMap::new(),
            quotas: BTreeMap::new(),
            files_refused: false,
            requests: Http::new(entry),
            limiter: Limiter::new(limits, account.clone()),
            account,
            http_memory: BTreeMap::new(),
            stdio,
            secrets: Arc::clone(secrets),
            imports: Imports::new(environment, Arc::clone(observer)),
        }
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
