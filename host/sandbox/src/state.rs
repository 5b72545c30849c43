//! The data of a store: the guest's WASI context, its limits, and what its host functions work with.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toolbay_model::{Limit, Trace};
use toolbay_secrets::{Opened as OpenedSecrets, Secrets};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::account::{Account, Held, Overdrawn};
use crate::ask::Asking;
use crate::coop::Meter;
use crate::descriptors::{Files, Handle};
use crate::determinism::{Seed, Time};
use crate::effects::Effects;
use crate::environment::{Entry, Environment};
use crate::exchanges::Exchanges;
use crate::folders::Folders;
use crate::http::{FIELDS, Http};
use crate::imports::Imports;
use crate::input::Input;
use crate::kept::Kept;
use crate::ledger::Quota;
use crate::limiter::Limiter;
use crate::reach::Reach;
use crate::roots::Mounted;
use crate::sockets::Sockets;
use crate::stdio::Stdio;
use crate::talk::Talk;
use crate::tape::Tape;
use crate::traffic::Traffic;

/// What a call is given besides its [`Entry`].
#[derive(Default)]
pub(crate) struct Given {
    /// The secrets of its caller.
    pub(crate) secrets: Arc<OpenedSecrets>,
    /// The folders of the call.
    pub(crate) folders: Folders,
    /// The text on standard input of a guest that returns its result on standard output.
    pub(crate) stdin: Option<String>,
    /// The conversation over the standard streams of a guest that is an MCP server.
    pub(crate) talk: Option<Talk>,
    /// What time and random numbers depend on, if they are the same in each call.
    pub(crate) seed: Option<Seed>,
    /// Whether the guest can ask its caller something.
    pub(crate) asks: bool,
}

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
    /// What handles of folders lead to, by their entries in the resource table.
    pub(crate) reach: BTreeMap<u32, Reach>,
    /// Whether a file was not opened because there was no descriptor for it.
    pub(crate) files_refused: bool,
    pub(crate) requests: Http,
    /// Those on their way.
    pub(crate) exchanges: Exchanges,
    pub(crate) sockets: Sockets,
    /// The clock of a call whose time is the same in each; `None` if it is the system's.
    pub(crate) time: Option<Time>,
    /// What the plugin keeps from one call to the next.
    pub(crate) kept: Kept,
    /// The memory of the call.
    pub(crate) account: Account,
    /// What the handles of `wasi:http` hold of it, by their entries in the resource table.
    pub(crate) http_memory: BTreeMap<u32, Held>,
    pub(crate) limiter: Limiter,
    pub(crate) stdio: Stdio,
    /// Standard input, for WASI 0.3.
    pub(crate) input: Input,
    /// The conversation over the standard streams, if there is one.
    pub(crate) talk: Option<Talk>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) imports: Imports,
    /// What the call does beyond its memory.
    pub(crate) effects: Effects,
    pub(crate) tape: Tape,
    /// Whether the call has mounted folders, or had them when it was recorded.
    pub(crate) has_mounts: bool,
    pub(crate) asking: Asking,
}

impl State {
    /// The state of a call that is given this.
    pub(crate) fn new(entry: &Entry<'_>, given: Given, files: Files, meter: Meter) -> Self {
        let Given { secrets: opened, folders, stdin: text, talk, seed, asks } = given;
        let Folders { mounted: mounts, full, .. } = folders;
        let Entry { environment, trace, observer, deadline, tape, .. } = entry;
        let Environment { limits, permissions, connections, .. } = environment;
        tape.redact(&opened.secrets);
        let account = Account::new(limits.memory);
        let effects = Effects::new(asks, &entry.journal, limits, account.clone(), tape.clone());
        let (journal, secrets) = (Arc::clone(&entry.journal), Arc::clone(&opened.secrets));
        let asking = Asking::new(entry.answerable, journal, effects.clone(), secrets, limits);
        let mut stdio = Stdio::new(limits.stdio, account.clone());
        let mut context = WasiCtxBuilder::new();
        let mut input = talk.as_ref().map_or(Input::Empty, |talk| Input::Talk(talk.reader()));
        if let Some(text) = text {
            let text = MemoryInputPipe::new(text);
            input = Input::Text(text.clone());
            context.stdin(text);
            // One byte more than an answer may have: enough to see that it is too large.
            stdio = stdio.keeping(usize::try_from(limits.output.as_u64().saturating_add(1)).unwrap_or(usize::MAX));
        }
        match &talk {
            Some(talk) => context.stdin(talk.stdin()).stdout(talk.stdout(stdio.stdout())),
            None => context.stdout(stdio.stdout()),
        };
        context.stderr(stdio.stderr()).max_random_size(limits.random.as_u64());
        for name in &permissions.environment {
            if let Some(value) = tape.variable(name, || std::env::var(name).ok()) {
                context.env(name, value);
            }
        }
        let time = seed.map(|seed| seed.apply(&mut context));
        if time.is_none() {
            tape.apply(&mut context);
        }
        // A trace is another one in each call.
        let trace = trace.filter(|_| time.is_none()).map(variables).unwrap_or_default();
        for (name, value) in tape.trace(trace) {
            context.env(name, value);
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELDS);
        let requests = Http::new(entry, Arc::clone(&opened), effects.clone());
        let traffic = Traffic::new(limits);
        let sockets =
            Sockets::new(connections, requests.denials(), effects.clone(), traffic, account.clone(), *deadline);
        let gate = sockets.gate();
        context.allow_tcp(true).socket_addr_check(move |address, purpose| {
            let is_allowed = gate.allows(address, purpose);
            Box::pin(async move { is_allowed })
        });
        Self {
            wasi: context.build(),
            table,
            http,
            mounts,
            full,
            files,
            open_files: BTreeMap::new(),
            quotas: BTreeMap::new(),
            reach: BTreeMap::new(),
            files_refused: false,
            requests,
            exchanges: Exchanges::default(),
            sockets,
            time,
            kept: Kept::new(entry, account.clone(), meter),
            limiter: Limiter::new(limits, account.clone()),
            account,
            http_memory: BTreeMap::new(),
            stdio,
            input,
            talk,
            secrets: Arc::clone(&opened.secrets),
            imports: Imports::new(environment, Arc::clone(&opened.secrets), Arc::clone(observer), tape.clone()),
            effects,
            tape: tape.clone(),
            has_mounts: tape.mounts().unwrap_or(!permissions.mounts.is_empty()),
            asking,
        }
    }

    /// The resources that the guest has handles of.
    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }

    /// Draws what a new handle of `wasi:http` holds from the account, until the handle is dropped or consumed.
    pub(crate) fn http_held<T>(&mut self, made: Resource<T>, bytes: usize) -> Result<Resource<T>, Overdrawn> {
        self.http_memory.insert(made.rep(), self.account.hold(bytes)?);
        Ok(made)
    }
}

/// How OpenTelemetry passes a trace on to a program: every language can read it.
fn variables(trace: &Trace) -> Vec<(&'static str, String)> {
    let others = [("TRACESTATE", &trace.state), ("BAGGAGE", &trace.baggage)];
    let others = others.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    [("TRACEPARENT", trace.parent())].into_iter().chain(others).collect()
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
