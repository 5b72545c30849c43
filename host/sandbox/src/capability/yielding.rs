//! Turns a guest's fuel yields into real yields of the tokio task.
//!
//! When a store yields because of fuel, wasmtime wakes its own task at once and returns `Pending`.
//! Tokio puts such a task straight back into its queue and polls I/O and timers only once per 61
//! polls. A spinning guest would make everything else on the runtime wait for 61 slices.
//! [`drive_cooperatively`] gives the call its own waker: a wake during the poll becomes
//! `tokio::task::yield_now`, which lets the driver run first. A call that returns `Pending` without
//! such a wake waits for an event. It then releases its compute permit, and acquires one again
//! before it continues.
//!
//! This module also measures the CPU time of the call, because fuel does not measure it: a guest
//! that only requests random data uses a hundred units of fuel in a millisecond of the host's time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use toolbay_model::thread_cpu_time;

use crate::capability::http::pending_requests::PendingRequests;
use crate::context::compute_permit::ComputePermit;

/// CPU time after which a yielding guest releases the thread to other tasks. On an otherwise idle
/// runtime, each release costs tens of microseconds: the runtime polls for I/O and wakes another
/// thread, which finds no work.
const YIELD_SLICE: Duration = Duration::from_micros(400);

/// CPU time after which a step counts as computation. A guest with shorter steps depends on the
/// progress of the runtime, so it yields at once.
const MIN_COMPUTE_STEP: Duration = Duration::from_micros(20);

/// The CPU time of a call, and whether it waited for an event. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuMeter(Arc<MeterState>);

#[derive(Debug, Default)]
struct MeterState {
    nanoseconds: AtomicU64,
    has_idled: AtomicBool,
}

impl CpuMeter {
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.0.nanoseconds.load(Ordering::Relaxed)
    }

    /// Returns whether the call waited for an event without using the processor.
    pub(crate) fn has_idled(&self) -> bool {
        self.0.has_idled.load(Ordering::Relaxed)
    }

    /// Adds CPU time that another thread spent for the call.
    pub(crate) fn add(&self, time: Duration) {
        self.0
            .nanoseconds
            .fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    /// Runs one step of the call on the current thread. Also returns its CPU time.
    fn measure<T>(&self, step: impl FnOnce() -> T) -> (T, Duration) {
        let before = thread_cpu_time();
        let result = step();
        let spent = thread_cpu_time().saturating_sub(before);
        self.0
            .nanoseconds
            .fetch_add(nanoseconds(spent), Ordering::Relaxed);
        (result, spent)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The outcome of one step of a call.
enum CallStep<T> {
    Finished(T),
    /// The guest computes and yields. The value is the CPU time of the step.
    Yields(Duration),
    /// The guest waits for an event and has released its permit.
    Waits,
}

/// Drives `call` and adds its CPU time to `meter`. Yields to the rest of the runtime when the call
/// yields for the first time, and then after each [`YIELD_SLICE`]. The call's HTTP requests advance
/// between its steps; their CPU time does not count. While the guest waits for any event, it
/// releases its `permit`.
pub(crate) async fn drive_cooperatively<F: Future>(
    meter: CpuMeter,
    pending_requests: PendingRequests,
    permit: Option<&dyn ComputePermit>,
    call: F,
) -> F::Output {
    let mut call = pin!(call);
    let [guest_calls, request_calls] = [(); 2].map(|()| Arc::new(CallWaker::default()));
    let [guest_waker, request_waker] =
        [&guest_calls, &request_calls].map(|wakes| Waker::from(Arc::clone(wakes)));
    // CPU time since the last yield. The initial value forces a yield at the first step, because
    // the call may run on a thread that serves the protocol.
    let mut since_yield = YIELD_SLICE;
    loop {
        let step = poll_fn(|task| {
            guest_calls.start_poll(task.waker());
            request_calls.start_poll(task.waker());
            pending_requests.advance(&request_waker);
            // Earlier wakes of the guest, such as for a response, are served by this poll.
            guest_calls.reset();
            let (polled, step_time) =
                meter.measure(|| call.as_mut().poll(&mut Context::from_waker(&guest_waker)));
            if polled.is_pending() {
                // Start requests that the guest has just issued before it waits.
                request_calls.reset();
                pending_requests.advance(&request_waker);
            }
            let has_yielded = [&guest_calls, &request_calls]
                .map(|wakes| wakes.end_poll())
                .contains(&true);
            match polled {
                Poll::Ready(output) => Poll::Ready(CallStep::Finished(output)),
                Poll::Pending if has_yielded => Poll::Ready(CallStep::Yields(step_time)),
                Poll::Pending => {
                    meter.0.has_idled.store(true, Ordering::Relaxed);
                    if permit.is_some_and(ComputePermit::release) {
                        Poll::Ready(CallStep::Waits)
                    } else {
                        Poll::Pending
                    }
                }
            }
        });
        let step_time = match step.await {
            CallStep::Finished(output) => return output,
            CallStep::Yields(took) => took,
            CallStep::Waits => {
                // Advance the requests in the meantime: they can be the event that it waits for.
                let advance = |task: &Context<'_>| {
                    request_calls.start_poll(task.waker());
                    pending_requests.advance(&request_waker);
                    if request_calls.end_poll() {
                        task.waker().wake_by_ref();
                    }
                };
                poll_fn(|task| {
                    guest_calls.set_task(task.waker());
                    advance(task);
                    if guest_calls.was_woken() {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                if let Some(permit) = permit {
                    let mut acquisition = permit.acquire();
                    poll_fn(|task| {
                        advance(task);
                        acquisition.as_mut().poll(task)
                    })
                    .await;
                }
                continue;
            }
        };
        since_yield += step_time;
        if step_time < MIN_COMPUTE_STEP || since_yield >= YIELD_SLICE {
            since_yield = Duration::ZERO;
            tokio::task::yield_now().await;
        }
    }
}

/// Lets other tasks run once. The guest still has work and keeps its permit.
/// `tokio::task::yield_now` wakes its task only after the poll, and would look like a wait.
pub(crate) async fn yield_briefly() {
    let mut has_yielded = false;
    poll_fn(|task| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A waker that distinguishes wakes during the poll from later ones.
#[derive(Default)]
struct CallWaker {
    is_polling: AtomicBool,
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl CallWaker {
    /// Starts a poll. Later wakes concern the task of `waker`.
    fn start_poll(&self, waker: &Waker) {
        self.set_task(waker);
        self.reset();
        self.is_polling.store(true, Ordering::SeqCst);
    }

    /// Registers `waker` for later wakes.
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock();
        match &mut *task {
            Some(current) => current.clone_from(waker),
            None => *task = Some(waker.clone()),
        }
    }

    /// Returns whether there was a wake since the last reset.
    fn was_woken(&self) -> bool {
        self.is_woken.load(Ordering::SeqCst)
    }

    /// Resets the flag, because the wakes so far are being served.
    fn reset(&self) {
        self.is_woken.store(false, Ordering::SeqCst);
    }

    /// Ends a poll. Returns whether there was a wake during it.
    fn end_poll(&self) -> bool {
        self.is_polling.store(false, Ordering::SeqCst);
        self.is_woken.swap(false, Ordering::SeqCst)
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // During the poll no task needs to be woken: `end_poll` checks `is_woken`. If the poll ends
        // between the two, the task is woken once more than necessary, which is harmless.
        if self.is_polling.load(Ordering::SeqCst) {
            return;
        }
        if let Some(task) = &*self.task.lock() {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests;
