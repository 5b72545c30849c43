//! One entry into a guest, start to finish: the only place that makes a store.

use std::sync::Arc;
use std::time::Instant;

use bytesize::ByteSize;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use toolbay_model::{CallError, Description, Limit, Limits, Output, Quiet, Usage};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::block::Refusal;
use crate::compiled::Compiled;
use crate::coop::{Meter, coop};
use crate::engine::Ticking;
use crate::environment::{Entry, Environment};
use crate::error::{Evidence, classify};
use crate::output;
use crate::prepared::Prepared;
use crate::sandbox::Sandbox;
use crate::state::State;

/// A guest gives way after this much fuel: 40 to 250 µs of compute. A tenth of
/// it doubles the run time of tight loops, ten times as much lets others wait.
const YIELD_EVERY: u64 = 1_000_000;

/// How much of a crashed guest's standard error goes into the error.
const STDERR_SHOWN: usize = 1_000;

/// The outcome of a call and its usage.
#[derive(Debug)]
pub struct Finished<T> {
    /// The output, or why there is none.
    pub result: Result<T, CallError>,
    /// What the call used.
    pub usage: Usage,
    /// The first 64 KiB that the guest wrote to standard output, without control characters and secrets.
    pub stdout: String,
    /// The first 64 KiB that the guest wrote to standard error, without control characters and secrets.
    pub stderr: String,
    /// Log messages that were dropped because of [`Limits::log`](toolbay_model::Limits::log).
    pub log_dropped: u64,
}

impl Sandbox {
    /// Lists a plugin's tools, without permissions and within `limits`.
    pub async fn describe(&self, compiled: &Compiled, limits: &Limits) -> Finished<Description> {
        let environment = Environment { limits: limits.clone(), ..Environment::default() };
        match self.enter(Entry { environment: &environment, trace: None, observer: Arc::new(Quiet) }, None) {
            Ok(mut entered) => {
                let call = compiled.prepared.describe(&mut entered.store, compiled.docs());
                let answer = timeout(limits.timeout, coop(entered.meter.clone(), call)).await;
                entered.finish(answer, |mut description| {
                    description.remarks.extend(compiled.remarks().iter().cloned());
                    Ok(description)
                })
            }
            Err(error) => Finished::without_entering(error),
        }
    }

    /// Calls a tool by its name without the prefix. `arguments` is a JSON object as text.
    ///
    /// Must run on the guests' runtime ([`Sandbox::spawn`]). Dropping the future cancels the call and frees its store.
    pub async fn call(&self, prepared: &Prepared, entry: Entry<'_>, tool: &str, arguments: &str) -> Finished<Output> {
        let environment = entry.environment;
        let stdin = prepared.is_command().then(|| arguments.to_owned());
        match self.enter(entry, stdin) {
            Ok(mut entered) => {
                let call = coop(entered.meter.clone(), prepared.call(&mut entered.store, tool, arguments));
                let answer = timeout(environment.limits.timeout, call).await;
                entered.finish(answer, |answer| match answer {
                    Ok(output) => output::check(output, &environment.limits, &environment.secrets),
                    Err(Refusal::InvalidArguments(text)) => Err(CallError::InvalidArguments(output::message(
                        text,
                        &environment.limits,
                        &environment.secrets,
                    ))),
                    Err(Refusal::Failed(text)) => {
                        Err(CallError::Failed(output::message(text, &environment.limits, &environment.secrets)))
                    }
                })
            }
            Err(error) => Finished::without_entering(error),
        }
    }

    /// Makes the store of one call. Nothing else does.
    /// A guest that is given `stdin` answers on its standard output.
    fn enter<'a>(&self, entry: Entry<'a>, stdin: Option<String>) -> Result<Entered<'a>, CallError> {
        let Entry { environment, trace, observer } = entry;
        let limits = &environment.limits;
        let state = State::new(environment, trace, observer, stdin).map_err(CallError::Failed)?;
        let mut store = Store::new(self.engine(), state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(limits.transfer.as_u64()).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let (meter, fuel) = (Meter::default(), limits.fuel);
        let spent = meter.clone();
        store.epoch_deadline_callback(move |_| {
            // Work that the host does for a guest burns none of its fuel, so a nanosecond of processor time costs one
            // unit at the least. Compute burns four times as much and more, and stays deterministic.
            if spent.nanoseconds() > fuel {
                return Err(Trap::OutOfFuel.into());
            }
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
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

/// A guest's store while the call runs, and what is needed to judge its end.
struct Entered<'a> {
    store: Store<State>,
    limits: &'a Limits,
    meter: Meter,
    stack: ByteSize,
    started: Instant,
    _ticking: Ticking,
}

impl Entered<'_> {
    /// Judges how the call ended; the store is dropped on return, whatever came of it.
    fn finish<A, T>(
        self,
        answer: Result<wasmtime::Result<A>, Elapsed>,
        check: impl FnOnce(A) -> Result<T, CallError>,
    ) -> Finished<T> {
        let wall = self.started.elapsed();
        let state = self.store.data();
        let (stdout, stderr) = state.stdio.captured();
        let [stdout, stderr] = [stdout, stderr].map(|kept| kept.scrubbed(&state.secrets));
        let burnt = self.limits.fuel.saturating_sub(self.store.get_fuel().unwrap_or_default());
        let mut usage = Usage { fuel: burnt, wall, memory: state.account.peak() as u64 };
        let result = match answer {
            Err(_elapsed) => Err(CallError::limit(Limit::Deadline(self.limits.timeout))),
            Ok(Ok(answer)) => check(answer),
            Ok(Err(error)) => {
                let evidence = Evidence {
                    memory_refused: state.account.is_overdrawn(),
                    table_refused: state.limiter.table_refused,
                    stdio_exceeded: state.stdio.exceeded(),
                    stderr: tail(&stderr),
                };
                Err(classify(&error, evidence, self.limits, self.stack))
            }
        };
        if matches!(result, Err(CallError::Limit { limit: Limit::Fuel(_), .. })) {
            usage.fuel = self.limits.fuel;
        }
        Finished { result, usage, stdout, stderr, log_dropped: state.log_dropped }
    }
}

impl<T> Finished<T> {
    fn without_entering(error: CallError) -> Self {
        Self {
            result: Err(error),
            usage: Usage::default(),
            stdout: String::new(),
            stderr: String::new(),
            log_dropped: 0,
        }
    }
}

/// The end of `text`, which is clean, at most [`STDERR_SHOWN`] bytes; nothing if it is blank.
///
/// Without the line in which Rust says how to see more: here there is no more to see.
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
    fn of_standard_error_the_end_is_shown_without_advice_that_does_not_help() {
        let panic = "\nthread 'main' panicked at src/lib.rs:3:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(tail(panic).unwrap(), "thread 'main' panicked at src/lib.rs:3:5:\nboom");
        assert_eq!(tail(" \n"), None);
        let long = format!("{}é{}", "x".repeat(10), "y".repeat(STDERR_SHOWN - 1));
        assert_eq!(tail(&long).unwrap(), "y".repeat(STDERR_SHOWN - 1));
    }
}
