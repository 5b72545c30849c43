//! Runs one call of a guest from start to finish. This is the only module that creates stores.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use tokio::time::error::Elapsed;
use tokio::time::timeout_at;
use toolbay_model::{CallError, CallUsage, Limit, Limits};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::capability::determinism::CallSeed;
use crate::capability::files::call_directories::CallDirectories;
use crate::capability::files::descriptors::{CallDescriptors, OpenDescriptor};
use crate::capability::files::scratch_directories::ScratchDirectory;
use crate::capability::host_denial::HostDenial;
use crate::capability::input_request::SuspendedCall;
use crate::capability::yielding::{CpuMeter, drive_cooperatively};
use crate::compile::engine::{self, TickGuard};
use crate::context::call_context::CallContext;
use crate::context::plugin_request::PluginRequest;
use crate::prepare::prepared_component::PreparedComponent;
use crate::reply::guest_reply::{GuestFailure, GuestReply};
use crate::reply::reply_check::UncheckedReply;
use crate::run::sandbox::Sandbox;
use crate::store::error::{TrapEvidence, classify};
use crate::store::state::{CallResources, StoreState};

/// Fuel after which a guest yields: 40 to 250 µs of computation. The guest's own HTTP requests then
/// advance, and every few yields other tasks run ([`drive_cooperatively`]). With a tenth of this
/// value, tight loops take twice as long. With ten times this value, other tasks wait.
const YIELD_INTERVAL_FUEL: u64 = 1_000_000;

/// Maximum size of a crashed guest's final standard error output that the error quotes, in bytes.
const MAX_STDERR_BYTES: usize = 1_000;

/// Maximum time that the reply of a call waits for the removal of its temporary directory. The
/// directory is removed in any case.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a call and its usage.
#[derive(Debug)]
pub struct FinishedCall<T> {
    /// The output, or the reason why it is missing.
    pub result: Result<T, CallError>,
    /// The resource usage of the call.
    pub usage: CallUsage,
    /// When its store was ready: [`CallUsage::wall`] begins there. `None` if no guest was entered.
    pub entered: Option<Instant>,
    /// Time in which it waited or did not have a processor. The rest of [`CallUsage::wall`] is its
    /// own CPU time.
    pub waited: Duration,
    /// True if the guest itself waited for an external event, such as a response.
    pub idled: bool,
    /// The first 64 KiB that the guest wrote to standard output, without control characters and
    /// secrets.
    pub stdout: String,
    /// The first 64 KiB that the guest wrote to standard error, without control characters and
    /// secrets.
    pub stderr: String,
    /// Log messages that were dropped because of [`Limits::log`](toolbay_model::Limits::log).
    pub log_dropped: u64,
    /// The first denial that the guest received, or `None` if no operation was denied.
    pub first_denial: Option<HostDenial>,
}

impl Sandbox {
    /// Sends a request to a plugin, and returns its reply. The reply is not checked yet:
    /// [`UncheckedReply::check`] may take long.
    ///
    /// Must run on the guests' runtime ([`Sandbox::spawn`]). Dropping the future cancels the call
    /// and frees its store.
    pub async fn call(
        &self,
        prepared: &PreparedComponent,
        context: CallContext<'_>,
        request: PluginRequest<'_>,
    ) -> FinishedCall<UncheckedReply> {
        let deadline = context.deadline.into();
        let timeout = context.environment.limits.timeout;
        let opening = self.open_resources(prepared, &context, request);
        let late = |_elapsed| Err(CallError::limit(Limit::Deadline(timeout)));
        let opened = timeout_at(deadline, opening).await.unwrap_or_else(late);
        let OpenedResources {
            descriptors,
            resources,
            scratch,
            _opened,
        } = match opened {
            Ok(opened) => opened,
            Err(error) => return FinishedCall::without_guest(Err(error)),
        };
        let finished = match self.enter(prepared, &context, descriptors, resources) {
            Ok(entered) => entered.run(prepared, &context, request).await,
            Err(error) => FinishedCall::without_guest(Err(error)),
        };
        if let Some(scratch) = scratch {
            // The removal holds the call's permit, but not forever: a file system can hang.
            let _ = tokio::time::timeout(REMOVAL_TIMEOUT, scratch.remove()).await;
        }
        finished
    }

    /// Opens the secrets and the directories of a call.
    async fn open_resources(
        &self,
        prepared: &PreparedComponent,
        entry: &CallContext<'_>,
        asked: PluginRequest<'_>,
    ) -> Result<OpenedResources, CallError> {
        let stdin = match asked {
            PluginRequest::Tool { name, arguments } => {
                prepared.is_command_tool(name).then(|| arguments.to_owned())
            }
            PluginRequest::Prompt { .. }
            | PluginRequest::Resource { .. }
            | PluginRequest::Completion(_) => None,
        };
        let seed = entry
            .environment
            .permissions
            .deterministic
            .then(|| CallSeed::new(asked));
        let descriptors = self.inner.descriptors.start_call();
        let secrets = entry
            .environment
            .secrets
            .open(entry.caller)
            .await
            .map_err(CallError::Internal)?;
        let mut directories = CallDirectories::open(
            entry,
            &descriptors,
            &self.inner.usage_ledgers,
            &self.inner.scratch_directories,
        )
        .await
        .map_err(CallError::Failed)?;
        Ok(OpenedResources {
            descriptors,
            scratch: directories.scratch.take(),
            _opened: std::mem::take(&mut directories.descriptors),
            resources: CallResources {
                secrets,
                directories,
                stdin,
                stdio_transport: prepared.stdio_transport(),
                seed,
                can_ask: prepared.can_ask(),
            },
        })
    }

    /// Creates the store of one call. No other function creates stores. If `given.stdin` is set,
    /// the guest returns its result on standard output.
    pub(crate) fn enter<'a>(
        &self,
        prepared: &PreparedComponent,
        entry: &CallContext<'a>,
        files: CallDescriptors,
        resources: CallResources,
    ) -> Result<EnteredStore<'a>, CallError> {
        let limits = &entry.environment.limits;
        let meter = CpuMeter::default();
        let fuel = limits.fuel;
        let state = StoreState::new(entry, resources, files, meter.clone());
        let stacks = prepared
            .extra_stacks()
            .saturating_mul(engine::stack_size(self.inner.engines.stack()));
        state
            .memory_budget
            .charge(stacks)
            .map_err(|_overdrawn| CallError::limit(Limit::Memory(limits.memory)))?;
        let mut store = Store::new(prepared.engine(), state);
        store.limiter(|state| &mut state.limiter);
        if let Some(table) = store.concurrent_resource_table() {
            // Tasks, the events that they wait for, streams and futures each use one or a few
            // entries.
            table.set_max_capacity(limits.handles);
        }
        store.set_hostcall_fuel(usize::try_from(limits.transfer.as_u64()).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let spent = meter.clone();
        store.epoch_deadline_callback(move |_| {
            // The host's work for a guest uses no fuel, so each nanosecond of CPU time counts as at
            // least one unit. Computation uses at least four units per nanosecond, so the end of a
            // pure computation stays deterministic.
            if spent.nanoseconds() > fuel {
                return Err(Trap::OutOfFuel.into());
            }
            // Unlike a wait, this wakes the call at once, so a computing guest keeps its compute
            // permit.
            Ok(UpdateDeadline::Yield(1))
        });
        let metered = store
            .set_fuel(limits.fuel)
            .and_then(|()| store.fuel_async_yield_interval(Some(YIELD_INTERVAL_FUEL)));
        metered.map_err(|error| CallError::Internal(format!("{error:#}")))?;
        Ok(EnteredStore {
            store,
            limits,
            meter,
            stack: self.inner.engines.stack(),
            started: Instant::now(),
            _ticking: self.inner.engines.ticker().start_guest(),
        })
    }
}

/// The opened resources of a call.
struct OpenedResources {
    descriptors: CallDescriptors,
    resources: CallResources,
    /// The temporary directory, which is removed after the call.
    scratch: Option<ScratchDirectory>,
    /// The reserved file descriptors of the call's directories.
    _opened: Vec<OpenDescriptor>,
}

/// A guest's store while the call runs, and the state that is needed to determine how the call
/// ended.
pub(crate) struct EnteredStore<'a> {
    pub(crate) store: Store<StoreState>,
    limits: &'a Limits,
    pub(crate) meter: CpuMeter,
    stack: ByteSize,
    started: Instant,
    _ticking: TickGuard,
}

impl EnteredStore<'_> {
    /// Sends a request to the guest, and ends the call with its reply.
    async fn run(
        mut self,
        prepared: &PreparedComponent,
        entry: &CallContext<'_>,
        asked: PluginRequest<'_>,
    ) -> FinishedCall<UncheckedReply> {
        let state = self.store.data();
        let exchanges = state.pending_requests.clone();
        let secrets = Arc::clone(&state.secrets);
        let call = prepared.call(&mut self.store, asked);
        let answer = {
            let call = pin!(drive_cooperatively(
                self.meter.clone(),
                exchanges,
                entry.compute_permit,
                call
            ));
            until_deadline(entry.deadline.into(), call).await
        };
        self.finish(suspension_to_reply(answer), |returned| {
            Ok(UncheckedReply { returned, secrets })
        })
    }

    /// Determines how the call ended. The store is dropped in any case.
    pub(crate) fn finish<A, T>(
        self,
        answer: Result<wasmtime::Result<A>, Elapsed>,
        check: impl FnOnce(A) -> Result<T, CallError>,
    ) -> FinishedCall<T> {
        let wall = self.started.elapsed();
        let state = self.store.data();
        let (stdout, stderr) = state.stdio.captured();
        let [stdout, stderr] = [stdout, stderr].map(|kept| kept.scrubbed(&state.secrets));
        let mut usage = self.usage(wall);
        let result = match answer {
            Err(_elapsed) => Err(CallError::limit(Limit::Deadline(self.limits.timeout))),
            Ok(Ok(answer)) => check(answer),
            Ok(Err(error)) => {
                let evidence = TrapEvidence {
                    memory_refused: state.memory_budget.is_exceeded()
                        || state.limiter.memory_refused(self.store.gc_heap_capacity()),
                    table_refused: state.limiter.table_refused,
                    stderr: stderr_tail(&stderr),
                };
                Err(classify(&error, evidence, self.limits, self.stack))
            }
        };
        if matches!(
            result,
            Err(CallError::Limit {
                limit: Limit::Fuel(_),
                ..
            })
        ) {
            usage.fuel = self.limits.fuel;
        }
        FinishedCall {
            result,
            usage,
            entered: Some(self.started),
            waited: wall.saturating_sub(Duration::from_nanos(self.meter.nanoseconds())),
            idled: self.meter.has_idled(),
            stdout,
            stderr,
            log_dropped: state.imports.log_dropped(),
            first_denial: self.first_denial(),
        }
    }

    fn usage(&self, wall: Duration) -> CallUsage {
        let state = self.store.data();
        let fuel = self.store.get_fuel().unwrap_or_default();
        let (http_requests, http_bytes) = state.outgoing_http.usage();
        let (tcp_connections, tcp_bytes) = state.call_sockets.tcp_usage().totals();
        CallUsage {
            fuel: self.limits.fuel.saturating_sub(fuel),
            wall,
            memory: state.memory_budget.peak() as u64,
            http_requests,
            http_bytes,
            tcp_connections,
            tcp_bytes,
        }
    }

    fn first_denial(&self) -> Option<HostDenial> {
        let state = self.store.data();
        let full = state.exceeded_bound.get().copied().map(HostDenial::Limit);
        state
            .outgoing_http
            .first_denial(self.limits)
            .or_else(|| state.keyvalue.first_denial())
            .or(full)
    }
}

impl<T> FinishedCall<T> {
    /// Returns the same call with another outcome that is derived from this one.
    pub(crate) fn and_then<U>(
        self,
        next: impl FnOnce(T) -> Result<U, CallError>,
    ) -> FinishedCall<U> {
        let Self {
            result,
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
            first_denial: hindered,
        } = self;
        FinishedCall {
            result: result.and_then(next),
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
            first_denial: hindered,
        }
    }

    /// Creates the result of a call that did not enter a guest.
    pub fn without_guest(result: Result<T, CallError>) -> Self {
        Self {
            result,
            usage: CallUsage::default(),
            entered: None,
            waited: Duration::ZERO,
            idled: false,
            stdout: String::new(),
            stderr: String::new(),
            log_dropped: 0,
            first_denial: None,
        }
    }
}

/// Drives `call` until its deadline. A result that becomes ready at that moment is discarded: all
/// waits of a guest end at the deadline, and the guest must not react to that in a nondeterministic
/// way.
async fn until_deadline<T>(
    deadline: tokio::time::Instant,
    mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>,
) -> Result<T, Elapsed> {
    let mut begun = false;
    let in_time = poll_fn(|task| {
        if std::mem::replace(&mut begun, true) && tokio::time::Instant::now() >= deadline {
            // The timer is about to end the call.
            return Poll::Pending;
        }
        call.as_mut().poll(task)
    });
    timeout_at(deadline, in_time).await
}

/// Converts the error that suspends a call into a reply with the guest's questions.
fn suspension_to_reply(
    answer: Result<wasmtime::Result<Result<GuestReply, GuestFailure>>, Elapsed>,
) -> Result<wasmtime::Result<Result<GuestReply, GuestFailure>>, Elapsed> {
    answer.map(|answer| {
        answer.or_else(|error| match error.downcast::<SuspendedCall>() {
            Ok(SuspendedCall(interview)) => Ok(Ok(GuestReply::Questions(interview))),
            Err(error) => Err(error),
        })
    })
}

/// Returns the end of `text`, at most [`MAX_STDERR_BYTES`] bytes, or `None` if it is blank.
///
/// Removes Rust's hint about `RUST_BACKTRACE`, which does not help here.
fn stderr_tail(text: &str) -> Option<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE=1`"))
        .collect();
    let text = lines.join("\n");
    let text = text.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_STDERR_BYTES));
    text.get(start..)
        .filter(|tail| !tail.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
