//! One call of a guest from start to finish: the only place that creates a store.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use tokio::time::error::Elapsed;
use tokio::time::timeout_at;
use toolbay_model::{CallError, Limit, Limits, Usage};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::ask::Suspended;
use crate::asked::Asked;
use crate::callable::Callable;
use crate::coop::{Meter, coop};
use crate::descriptors::Files;
use crate::determinism::Seed;
use crate::engine::{self, Ticking};
use crate::environment::Entry;
use crate::error::{Evidence, classify};
use crate::folders::Folders;
use crate::hindrance::Hindrance;
use crate::output::Unchecked;
use crate::prepared::Prepared;
use crate::returned::{Refusal, Returned};
use crate::sandbox::Sandbox;
use crate::state::{Given, State};

/// Fuel after which a guest yields: 40 to 250 µs of computation. Its own requests advance then, and others every few times
/// ([`coop`]). With a tenth of it, tight loops take twice as long; with ten times as much, other tasks wait.
const YIELD_EVERY: u64 = 1_000_000;

/// Length of the end of a crashed guest's standard error that the error quotes, in bytes.
const STDERR_SHOWN: usize = 1_000;

/// How long the answer of a call waits until its temporary folder is removed. It is removed in any case.
const REMOVAL: Duration = Duration::from_secs(1);

/// The outcome of a call and its usage.
#[derive(Debug)]
pub struct Finished<T> {
    /// The output, or why there is none.
    pub result: Result<T, CallError>,
    /// What the call used.
    pub usage: Usage,
    /// When its store was ready: [`Usage::wall`] begins there. `None` if no guest was entered.
    pub entered: Option<Instant>,
    /// How long it waited, or others had the processor: the rest of [`Usage::wall`] is its own CPU time.
    pub waited: Duration,
    /// Whether the guest itself waited for something, such as a response.
    pub idled: bool,
    /// The first 64 KiB that the guest wrote to standard output, without control characters and secrets.
    pub stdout: String,
    /// The first 64 KiB that the guest wrote to standard error, without control characters and secrets.
    pub stderr: String,
    /// Log messages that were dropped because of [`Limits::log`](toolbay_model::Limits::log).
    pub log_dropped: u64,
    /// What was refused to the guest first; `None` if nothing was.
    pub hindered: Option<Hindrance>,
}

/// What a client reads of a plugin whose stored code cannot be used, and which cannot be compiled again either.
const LOST: &str = "The plugin cannot be called now: its compiled code was lost, and it could not be compiled again. Call it again in a few seconds.";

impl Sandbox {
    /// Asks a plugin for something: the one entry into a guest. What the guest returns is not yet checked:
    /// [`Unchecked::check`] may take long.
    ///
    /// Must run on the guests' runtime ([`Sandbox::spawn`]). Dropping the future cancels the call and frees its store.
    pub async fn call(&self, callable: &Callable, entry: Entry<'_>, asked: Asked<'_>) -> Finished<Unchecked> {
        let deadline = entry.deadline.into();
        let timeout = entry.environment.limits.timeout;
        let begin = |stored| {
            let sandbox = self.clone();
            self.spawn(async move { sandbox.open_stored(stored).await })
        };
        let prepared = match timeout_at(deadline, callable.opened(begin)).await {
            Ok(Ok(prepared)) => prepared,
            // The log says why.
            Ok(Err(_)) => return Finished::unentered(Err(CallError::Failed(LOST.to_owned()))),
            Err(_elapsed) => return Finished::unentered(Err(CallError::limit(Limit::Deadline(timeout)))),
        };
        let prepared = &*prepared;
        let stdin = match asked {
            Asked::Tool { name, arguments } => prepared.runs(name).then(|| arguments.to_owned()),
            Asked::Prompt { .. } | Asked::Resource { .. } | Asked::Completion(_) => None,
        };
        let talk = prepared.talk();
        let seed = entry.environment.permissions.deterministic.then(|| Seed::new(asked));
        let files = self.files();
        let opening = async {
            let secrets = entry.environment.secrets.open(entry.caller).await.map_err(CallError::Internal)?;
            let folders = Folders::open(&entry, &files, self.ledgers(), self.scratches()).await;
            Ok((secrets, folders.map_err(CallError::Failed)?))
        };
        let opened = timeout_at(deadline, opening).await;
        let late = |_elapsed| Err(CallError::limit(Limit::Deadline(timeout)));
        let (secrets, mut folders) = match opened.unwrap_or_else(late) {
            Ok(opened) => opened,
            Err(error) => return Finished::unentered(Err(error)),
        };
        let (scratch, _opened) = (folders.scratch.take(), std::mem::take(&mut folders.opened));
        let redacted = Arc::clone(&secrets.secrets);
        let asks = prepared.asks();
        let given = Given { secrets, folders, stdin, talk, seed, asks };
        let finished = match self.enter(prepared, &entry, files, given) {
            Ok(mut entered) => {
                let exchanges = entered.store.data().exchanges.clone();
                let call = prepared.call(&mut entered.store, asked);
                let answer = {
                    let call = pin!(coop(entered.meter.clone(), exchanges, entry.place, call));
                    ended_by(deadline, call).await
                };
                entered.finish(or_questions(answer), |returned| Ok(Unchecked { returned, secrets: redacted }))
            }
            Err(error) => Finished::unentered(Err(error)),
        };
        if let Some(scratch) = scratch {
            // With the permit of the call, but not for ever: a file system can hang.
            let _ = tokio::time::timeout(REMOVAL, scratch.end()).await;
        }
        finished
    }

    /// Creates the store of one entry; nothing else creates stores. A guest with `stdin` returns its result on standard
    /// output.
    pub(crate) fn enter<'a>(
        &self,
        prepared: &Prepared,
        entry: &Entry<'a>,
        files: Files,
        given: Given,
    ) -> Result<Entered<'a>, CallError> {
        let limits = &entry.environment.limits;
        let (meter, fuel) = (Meter::default(), limits.fuel);
        let state = State::new(entry, given, files, meter.clone());
        let stacks = prepared.further_stacks().saturating_mul(engine::stack_size(self.stack()));
        state.account.take(stacks).map_err(|_overdrawn| CallError::limit(Limit::Memory(limits.memory)))?;
        let mut store = Store::new(prepared.engine(), state);
        store.limiter(|state| &mut state.limiter);
        if let Some(table) = store.concurrent_resource_table() {
            // Tasks, what they wait for, streams and futures: each is an entry, or a few.
            table.set_max_capacity(limits.handles);
        }
        store.set_hostcall_fuel(usize::try_from(limits.transfer.as_u64()).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let spent = meter.clone();
        store.epoch_deadline_callback(move |_| {
            // The host's work for a guest uses no fuel, so each nanosecond of CPU time counts as at least one unit.
            // Computation uses at least four units per nanosecond, so its end stays deterministic.
            if spent.nanoseconds() > fuel {
                return Err(Trap::OutOfFuel.into());
            }
            // Unlike a wait, this wakes the call at once: a guest that computes keeps its place.
            Ok(UpdateDeadline::Yield(1))
        });
        let metered = store.set_fuel(limits.fuel).and_then(|()| store.fuel_async_yield_interval(Some(YIELD_EVERY)));
        metered.map_err(|error| CallError::Internal(format!("{error:#}")))?;
        Ok(Entered {
            store,
            limits,
            meter,
            stack: self.stack(),
            started: Instant::now(),
            _ticking: self.ticker().run(),
        })
    }
}

/// A guest's store while the call runs, and what is needed to determine how it ended.
pub(crate) struct Entered<'a> {
    pub(crate) store: Store<State>,
    limits: &'a Limits,
    pub(crate) meter: Meter,
    stack: ByteSize,
    started: Instant,
    _ticking: Ticking,
}

impl Entered<'_> {
    /// Determines how the call ended. The store is dropped on return in any case.
    pub(crate) fn finish<A, T>(
        self,
        answer: Result<wasmtime::Result<A>, Elapsed>,
        check: impl FnOnce(A) -> Result<T, CallError>,
    ) -> Finished<T> {
        let wall = self.started.elapsed();
        let state = self.store.data();
        let (stdout, stderr) = state.stdio.captured();
        let [stdout, stderr] = [stdout, stderr].map(|kept| kept.scrubbed(&state.secrets));
        let burnt = self.limits.fuel.saturating_sub(self.store.get_fuel().unwrap_or_default());
        let (http_requests, http_bytes) = state.requests.used();
        let (tcp_connections, tcp_bytes) = state.sockets.traffic().used();
        let memory = state.account.peak() as u64;
        let mut usage = Usage { fuel: burnt, wall, memory, http_requests, http_bytes, tcp_connections, tcp_bytes };
        let result = match answer {
            Err(_elapsed) => Err(CallError::limit(Limit::Deadline(self.limits.timeout))),
            Ok(Ok(answer)) => check(answer),
            Ok(Err(error)) => {
                let evidence = Evidence {
                    memory_refused: state.account.is_overdrawn()
                        || state.limiter.memory_refused(self.store.gc_heap_capacity()),
                    table_refused: state.limiter.table_refused,
                    stderr: tail(&stderr),
                };
                Err(classify(&error, evidence, self.limits, self.stack))
            }
        };
        if matches!(result, Err(CallError::Limit { limit: Limit::Fuel(_), .. })) {
            usage.fuel = self.limits.fuel;
        }
        let full = state.full.get().copied().map(Hindrance::Limit);
        let hindered = state.requests.hindrance(self.limits).or_else(|| state.kept.hindrance()).or(full);
        let (entered, log_dropped) = (Some(self.started), state.imports.log_dropped());
        let waited = wall.saturating_sub(Duration::from_nanos(self.meter.nanoseconds()));
        let idled = self.meter.has_idled();
        Finished { result, usage, entered, waited, idled, stdout, stderr, log_dropped, hindered }
    }
}

impl<T> Finished<T> {
    /// The same with another outcome, which follows from this one.
    pub(crate) fn and_then<U>(self, next: impl FnOnce(T) -> Result<U, CallError>) -> Finished<U> {
        let Self { result, usage, entered, waited, idled, stdout, stderr, log_dropped, hindered } = self;
        Finished { result: result.and_then(next), usage, entered, waited, idled, stdout, stderr, log_dropped, hindered }
    }

    /// Of a call in which no guest was entered at the end.
    pub(crate) fn unentered(result: Result<T, CallError>) -> Self {
        Self {
            result,
            usage: Usage::default(),
            entered: None,
            waited: Duration::ZERO,
            idled: false,
            stdout: String::new(),
            stderr: String::new(),
            log_dropped: 0,
            hindered: None,
        }
    }
}

/// Drives `call` until its deadline. What is ready at that moment comes too late: whatever a guest waits for ends with its time,
/// and how it would take that is not left to chance.
async fn ended_by<T>(
    deadline: tokio::time::Instant,
    mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>,
) -> Result<T, Elapsed> {
    let mut begun = false;
    let in_time = poll_fn(|task| {
        if std::mem::replace(&mut begun, true) && tokio::time::Instant::now() >= deadline {
            // The timer is about to end it.
            return Poll::Pending;
        }
        call.as_mut().poll(task)
    });
    timeout_at(deadline, in_time).await
}

/// A guest that asks ended with an error; that is what it returned.
fn or_questions(
    answer: Result<wasmtime::Result<Result<Returned, Refusal>>, Elapsed>,
) -> Result<wasmtime::Result<Result<Returned, Refusal>>, Elapsed> {
    answer.map(|answer| {
        answer.or_else(|error| match error.downcast::<Suspended>() {
            Ok(Suspended(interview)) => Ok(Ok(Returned::Questions(interview))),
            Err(error) => Err(error),
        })
    })
}

/// The end of `text`, at most [`STDERR_SHOWN`] bytes; `None` if it is blank.
///
/// Removes Rust's hint about `RUST_BACKTRACE`, which does not help here.
fn tail(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE=1`")).collect();
    let text = lines.join("\n");
    let text = text.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(STDERR_SHOWN));
    text.get(start..).filter(|tail| !tail.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_the_end_of_standard_error_without_the_hint_about_backtraces() {
        let panic = "\nthread 'main' panicked at src/lib.rs:3:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(tail(panic).unwrap(), "thread 'main' panicked at src/lib.rs:3:5:\nboom");
        assert_eq!(tail(" \n"), None);
        let long = format!("{}é{}", "x".repeat(10), "y".repeat(STDERR_SHOWN - 1));
        assert_eq!(tail(&long).unwrap(), "y".repeat(STDERR_SHOWN - 1));
    }
}
