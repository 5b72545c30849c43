//! Clocks. In calls with fixed clocks, a guest waits for the requested duration, and its clock then
//! advances by exactly that duration, however long the wait took. Every wait ends with its call.

use std::time::Duration;

use tokio::time::Instant;
use wasmtime::component::{Accessor, Linker};
use wasmtime_wasi::clocks::WasiClocksView as _;
use wasmtime_wasi::p3::bindings::clocks::monotonic_clock::Host as _;

use super::version::versioned;
use crate::capability::yielding::yield_briefly;
use crate::store::state::StoreState;

/// Condition that a guest waits for, in nanoseconds.
#[derive(Clone, Copy)]
enum ClockWait {
    /// This duration has passed.
    Elapsed(u64),
    /// The guest's clock has reached this time.
    ClockTime(u64),
}

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p3::clocks::add_to_linker(linker)?;
    linker.allow_shadowing(true);
    let mut clock = linker.instance(versioned!("wasi:clocks/monotonic-clock"))?;
    clock.func_wrap_concurrent("wait-for", |store, (duration,): (u64,)| {
        Box::pin(wait(store, ClockWait::Elapsed(duration)))
    })?;
    clock.func_wrap_concurrent("wait-until", |store, (when,): (u64,)| {
        Box::pin(wait(store, ClockWait::ClockTime(when)))
    })?;
    linker.allow_shadowing(false);
    Ok(())
}

async fn wait(store: &Accessor<StoreState>, until: ClockWait) -> wasmtime::Result<()> {
    let (time, now) = store.with(|mut access| {
        let state = access.data_mut();
        let time = state.fixed_time.clone();
        let now = match (&time, until) {
            (Some(time), _) => time.advance(),
            (None, ClockWait::Elapsed(_)) => 0,
            (None, ClockWait::ClockTime(_)) => state.clocks().now()?,
        };
        wasmtime::error::Ok((time, now))
    })?;
    let (duration, when) = match until {
        ClockWait::Elapsed(duration) => (duration, now.saturating_add(duration)),
        ClockWait::ClockTime(when) => (when.saturating_sub(now), when),
    };
    if duration == 0 {
        // Yield, so that a guest that waits in a loop does not block other tasks.
        yield_briefly().await;
    } else {
        // If the time cannot be represented, wait forever.
        match Instant::now().checked_add(Duration::from_nanos(duration)) {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
    if let Some(time) = time {
        time.advance_to(when);
    }
    Ok(())
}
