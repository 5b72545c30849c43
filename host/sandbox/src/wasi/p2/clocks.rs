//! Timers for calls with fixed clocks. A guest waits for the requested duration, and its clock then
//! advances by exactly that duration, however long the wait took. A replayed call does not wait:
//! the recording contains the clock readings and which pollable was ready first.

use std::time::Duration;

use tokio::time::Instant;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::clocks::WasiClocksView as _;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::Host as _;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::version::versioned;
use crate::capability::determinism::CallTime;
use crate::capability::yielding::yield_briefly;
use crate::store::state::StoreState;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut clock = linker.instance(versioned!("wasi:clocks/monotonic-clock"))?;
    clock.func_wrap("subscribe-duration", |mut store, (duration,): (u64,)| {
        let state = store.data_mut();
        let Some(time) = state.fixed_time.clone() else {
            if state.tape.is_replay() {
                return Ok((push_timer(state, None, 0, 0)?,));
            }
            return Ok((state.clocks().subscribe_duration(duration)?,));
        };
        let until = time.advance().saturating_add(duration);
        Ok((push_timer(state, Some(time), duration, until)?,))
    })?;
    clock.func_wrap("subscribe-instant", |mut store, (until,): (u64,)| {
        let state = store.data_mut();
        let Some(time) = state.fixed_time.clone() else {
            if state.tape.is_replay() {
                // The original call read the clock here, and the recording has that reading.
                state.clocks().now()?;
                return Ok((push_timer(state, None, 0, 0)?,));
            }
            return Ok((state.clocks().subscribe_instant(until)?,));
        };
        let duration = until.saturating_sub(time.advance());
        Ok((push_timer(state, Some(time), duration, until)?,))
    })
}

fn push_timer(
    state: &mut StoreState,
    time: Option<CallTime>,
    duration: u64,
    until: u64,
) -> wasmtime::Result<Resource<DynPollable>> {
    let duration = if state.tape.is_replay() { 0 } else { duration };
    // `None` if the time cannot be represented; the wait then never ends.
    let deadline = Instant::now().checked_add(Duration::from_nanos(duration));
    let table = state.clocks().table;
    let timer = table.push(ClockTimer {
        fixed_time: time,
        deadline,
        clock_target: until,
        has_yielded: false,
    })?;
    subscribe(table, timer)
}

/// Timer that waits until a deadline, and then moves the call's clock to a target time.
struct ClockTimer {
    fixed_time: Option<CallTime>,
    deadline: Option<Instant>,
    clock_target: u64,
    /// True if the timer has yielded once, so that a guest that polls in a loop does not block
    /// other tasks.
    has_yielded: bool,
}

#[async_trait]
impl Pollable for ClockTimer {
    async fn ready(&mut self) {
        match self.deadline {
            Some(deadline) if deadline > Instant::now() => tokio::time::sleep_until(deadline).await,
            Some(_) if self.has_yielded => {}
            Some(_) => {
                self.has_yielded = true;
                yield_briefly().await;
            }
            None => std::future::pending().await,
        }
        if let Some(time) = &self.fixed_time {
            time.advance_to(self.clock_target);
        }
    }
}
