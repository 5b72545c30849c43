//! The data of a store: the guest's WASI context, its limits, and the receiver of its log and progress.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytesize::ByteSize;
use toolbay_model::{Access, Observer, Trace};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::FsPerms;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::account::{Account, Held};
use crate::environment::Environment;
use crate::http::{FIELDS, NoNetwork};
use crate::limiter::Limiter;
use crate::secret::Secrets;
use crate::stdio::Stdio;

/// The data of one store. It lives as long as one call.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    no_network: NoNetwork,
    /// The memory of the call.
    pub(crate) account: Account,
    /// What the handles of `wasi:http` hold of it, by their entries in the resource table.
    pub(crate) http_memory: BTreeMap<u32, Held>,
    pub(crate) limiter: Limiter,
    pub(crate) stdio: Stdio,
    pub(crate) config: Arc<BTreeMap<String, String>>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) observer: Arc<dyn Observer>,
    /// Bytes of log messages that may still be forwarded.
    pub(crate) log_room: usize,
    /// Bytes of log messages that the call may forward in all.
    pub(crate) log_limit: ByteSize,
    /// Number of messages that were dropped.
    pub(crate) log_dropped: u64,
    /// The last reported progress. The next one must be greater.
    pub(crate) progress: f64,
}

impl State {
    /// # Errors
    ///
    /// A mounted folder cannot be opened; the text addresses the operator.
    pub(crate) fn new(
        environment: &Environment,
        trace: Option<&Trace>,
        observer: Arc<dyn Observer>,
        input: Option<String>,
    ) -> Result<Self, String> {
        let Environment { limits, permissions, config, secrets } = environment;
        let account = Account::new(limits.memory);
        let mut stdio = Stdio::new(limits.stdio.as_u64(), account.clone());
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
        for mount in &permissions.mounts {
            let access = match mount.access {
                Access::Read => FsPerms::ReadOnly,
                Access::ReadWrite => FsPerms::ReadWrite,
            };
            context.preopened_dir(&mount.host, &mount.guest, access).map_err(|error| {
                let why = match error.downcast_ref::<io::Error>().map(io::Error::kind) {
                    Some(io::ErrorKind::NotFound) => "does not exist".to_owned(),
                    Some(io::ErrorKind::NotADirectory) => "is not a folder".to_owned(),
                    Some(io::ErrorKind::PermissionDenied) => {
                        "cannot be opened by the server: permission denied".to_owned()
                    }
                    _ => format!("cannot be opened: {}", error.root_cause()),
                };
                let (written, place) = (mount.written.display(), &mount.place);
                format!("cannot mount the folder {written} at {}: it {why} ({place})", mount.guest)
            })?;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELDS);
        Ok(Self {
            wasi: context.build(),
            table,
            http,
            no_network: NoNetwork { secrets: Arc::clone(secrets) },
            limiter: Limiter::new(limits, account.clone()),
            account,
            http_memory: BTreeMap::new(),
            stdio,
            config: Arc::clone(config),
            secrets: Arc::clone(secrets),
            observer,
            log_room: usize::try_from(limits.log.as_u64()).unwrap_or(usize::MAX),
            log_limit: limits.log,
            log_dropped: 0,
            progress: f64::NEG_INFINITY,
        })
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.no_network }
    }
}
