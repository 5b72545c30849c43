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
//! This module also measures the CPU time of the call, because fuel only does not suffice: a guest
//! that only requests random data uses a hundred units of fuel in a millisecond of the host's time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use toolbay_model::thread_cpu_time;

use crate::capability::http::pending_requests::PendingRequests;
use crate::context::compute_permit::ComputePlace;

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
    idled: AtomicBool,
}

impl CpuMeter {
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.0.nanoseconds.load(Ordering::Relaxed)
    }

    /// Returns whether the call waited for an event without using the processor.
    pub(crate) fn has_idled(&self) -> bool {
        self.0.idled.load(Ordering::Relaxed)
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
    Done(T),
    /// The guest computes and yields. The value is the CPU time of the step.
    Yields(Duration),
    /// The guest waits for an event and has released its permit.
    Waits,
}

/// Drives `call` and adds its CPU time to `meter`. Yields to the rest of the runtime when the call
/// yields for the first time, and then after each [`YIELD_SLICE`]. The call's HTTP requests advance
/// between its steps; their CPU time does not count. While the guest waits for any event, it
/// releases its `place`.
pub(crate) async fn drive_cooperatively<F: Future>(
    meter: CpuMeter,
    exchanges: PendingRequests,
    place: Option<&dyn ComputePlace>,
    call: F,
) -> F::Output {
    let mut call = pin!(call);
    let [bell, chime] = [(); 2].map(|()| Arc::new(CallWaker::default()));
    let [waker, requests] = [&bell, &chime].map(|bell| Waker::from(Arc::clone(bell)));
    // CPU time since the last yield. The initial value forces a yield at first, because the call
    // can be on the thread of the protocol.
    let mut spent = YIELD_SLICE;
    loop {
        let step = poll_fn(|task| {
            bell.start_poll(task.waker());
            chime.start_poll(task.waker());
            exchanges.advance(&requests);
            // Earlier wakes of the guest, such as for a response, are served by this poll.
            bell.reset();
            let (polled, took) =
                meter.measure(|| call.as_mut().poll(&mut Context::from_waker(&waker)));
            if polled.is_pending() {
                // Start requests that the guest has just issued before it waits.
                chime.reset();
                exchanges.advance(&requests);
            }
            let yielded = [&bell, &chime].map(|bell| bell.end_poll()).contains(&true);
            match polled {
                Poll::Ready(output) => Poll::Ready(CallStep::Done(output)),
                Poll::Pending if yielded => Poll::Ready(CallStep::Yields(took)),
                Poll::Pending => {
                    meter.0.idled.store(true, Ordering::Relaxed);
                    if place.is_some_and(ComputePlace::release) {
                        Poll::Ready(CallStep::Waits)
                    } else {
                        Poll::Pending
                    }
                }
            }
        });
        let took = match step.await {
            CallStep::Done(output) => return output,
            CallStep::Yields(took) => took,
            CallStep::Waits => {
                // Advance the requests in the meantime: they can be the event that it waits for.
                let advance = |task: &Context<'_>| {
                    chime.start_poll(task.waker());
                    exchanges.advance(&requests);
                    if chime.end_poll() {
                        task.waker().wake_by_ref();
                    }
                };
                poll_fn(|task| {
                    bell.set_task(task.waker());
                    advance(task);
                    if bell.was_woken() {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                if let Some(place) = place {
                    let mut again = place.acquire();
                    poll_fn(|task| {
                        advance(task);
                        again.as_mut().poll(task)
                    })
                    .await;
                }
                continue;
            }
        };
        spent += took;
        if took < MIN_COMPUTE_STEP || spent >= YIELD_SLICE {
            spent = Duration::ZERO;
            tokio::task::yield_now().await;
        }
    }
}

/// Lets other tasks run once. The guest still has work and keeps its permit.
/// `tokio::task::yield_now` wakes its task only after the poll, and would look like a wait.
pub(crate) async fn yield_briefly() {
    let mut gave = false;
    poll_fn(|task| {
        if std::mem::replace(&mut gave, true) {
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
    polling: AtomicBool,
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl CallWaker {
    /// Starts a poll. Later wakes concern the task of `waker`.
    fn start_poll(&self, waker: &Waker) {
        self.set_task(waker);
        self.reset();
        self.polling.store(true, Ordering::SeqCst);
    }

    /// Registers `waker` for later wakes.
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(known) => known.clone_from(waker),
            None => *task = Some(waker.clone()),
        }
    }

    /// Returns whether there was a wake since the last reset.
    fn was_woken(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Resets the flag, because the wakes so far are being served.
    fn reset(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }

    /// Ends a poll. Returns whether there was a wake during it.
    fn end_poll(&self) -> bool {
        self.polling.store(false, Ordering::SeqCst);
        self.rung.swap(false, Ordering::SeqCst)
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        // During the poll no task needs to be woken: `end_poll` checks `rung`. If the poll ends
        // between the two, the task is woken once more than necessary, which is harmless.
        if self.polling.load(Ordering::SeqCst) {
            return;
        }
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `Pending` `n` times and wakes itself each time, as a fuel yield does.
    async fn yields(mut n: u32) -> &'static str {
        std::future::poll_fn(|task| {
            if n == 0 {
                return Poll::Ready("done");
            }
            n -= 1;
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    #[tokio::test]
    async fn a_yielding_call_finishes_and_lets_others_run() {
        let other = tokio::spawn(async { "other" });
        let meter = CpuMeter::default();
        assert_eq!(
            drive_cooperatively(
                meter.clone(),
                PendingRequests::default(),
                None,
                yields(1000)
            )
            .await,
            "done"
        );
        assert!(!meter.has_idled(), "a call that yields has something to do");
        assert!(other.is_finished(), "the other task ran between two yields");
    }

    #[tokio::test]
    async fn a_call_that_computes_yields_after_each_slice_and_at_once_the_first_time() {
        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let computes = |mut steps: u32, each: Duration| {
            std::future::poll_fn(move |task| {
                let start = thread_cpu_time();
                while thread_cpu_time().checked_sub(start).unwrap() < each {
                    std::hint::spin_loop();
                }
                steps -= 1;
                if steps == 0 {
                    return Poll::Ready(());
                }
                task.waker().wake_by_ref();
                Poll::Pending
            })
        };
        let meter = CpuMeter::default();
        drive_cooperatively(
            meter.clone(),
            PendingRequests::default(),
            None,
            computes(2, MIN_COMPUTE_STEP * 2),
        )
        .await;
        let first = turns.swap(0, Ordering::Relaxed);
        assert_eq!(first, 1, "it gave way after its first step");
        let before = meter.nanoseconds();
        drive_cooperatively(
            meter.clone(),
            PendingRequests::default(),
            None,
            computes(100, MIN_COMPUTE_STEP * 2),
        )
        .await;
        let slices =
            (meter.nanoseconds() - before) / u64::try_from(YIELD_SLICE.as_nanos()).unwrap();
        let turns = turns.load(Ordering::Relaxed);
        assert!(
            (2..=slices + 1).contains(&turns),
            "{turns} turns in {slices} slices"
        );
        other.abort();
    }

    #[tokio::test]
    async fn cpu_time_is_counted_and_waiting_is_not() {
        let meter = CpuMeter::default();
        let before = thread_cpu_time();
        let busy = async {
            while thread_cpu_time().checked_sub(before).unwrap() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
        };
        drive_cooperatively(meter.clone(), PendingRequests::default(), None, busy).await;
        let busy = meter.nanoseconds();
        assert!(busy >= 1_900_000, "{busy}");
        drive_cooperatively(
            meter.clone(),
            PendingRequests::default(),
            None,
            tokio::time::sleep(std::time::Duration::from_millis(20)),
        )
        .await;
        let waited = meter.nanoseconds() - busy;
        assert!(waited < 10_000_000, "{waited}");
        assert!(meter.has_idled());
    }

    #[tokio::test]
    async fn a_wake_from_elsewhere_is_not_lost() {
        let (tx, rx) = tokio::sync::oneshot::channel();
        let call = tokio::spawn(drive_cooperatively(
            CpuMeter::default(),
            PendingRequests::default(),
            None,
            rx,
        ));
        tokio::task::yield_now().await;
        tx.send(7).unwrap();
        assert_eq!(call.await.unwrap(), Ok(7));
    }

    /// Counts how often a call released its permit and acquired one again.
    struct Counted {
        gives: bool,
        given: AtomicU64,
        taken: AtomicU64,
        /// One permit for each time that the call can continue.
        turns: tokio::sync::Semaphore,
    }

    impl Counted {
        fn new(gives: bool, turns: usize) -> Self {
            let turns = tokio::sync::Semaphore::new(turns);
            Self {
                gives,
                given: AtomicU64::new(0),
                taken: AtomicU64::new(0),
                turns,
            }
        }

        fn counts(&self) -> (u64, u64) {
            (
                self.given.load(Ordering::SeqCst),
                self.taken.load(Ordering::SeqCst),
            )
        }
    }

    impl ComputePlace for Counted {
        fn release(&self) -> bool {
            self.given.fetch_add(1, Ordering::SeqCst);
            self.gives
        }

        fn acquire(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(async move {
                self.turns.acquire().await.unwrap().forget();
                self.taken.fetch_add(1, Ordering::SeqCst);
            })
        }
    }

    #[tokio::test]
    async fn a_call_that_computes_keeps_its_place() {
        let place = Counted::new(true, 0);
        drive_cooperatively(
            CpuMeter::default(),
            PendingRequests::default(),
            Some(&place),
            yields(100),
        )
        .await;
        drive_cooperatively(
            CpuMeter::default(),
            PendingRequests::default(),
            Some(&place),
            yield_briefly(),
        )
        .await;
        assert_eq!(place.counts(), (0, 0));
    }

    #[tokio::test]
    async fn a_call_that_waits_gives_its_place_back_and_goes_on_only_with_one() {
        for gives in [true, false] {
            let place = Counted::new(gives, 0);
            let (tx, rx) = tokio::sync::oneshot::channel();
            let mut call = pin!(drive_cooperatively(
                CpuMeter::default(),
                PendingRequests::default(),
                Some(&place),
                rx
            ));
            let mut look = async || poll_fn(|task| Poll::Ready(call.as_mut().poll(task))).await;
            assert!(look().await.is_pending());
            assert_eq!(place.counts(), (1, 0));
            tx.send(7).unwrap();
            if gives {
                assert!(look().await.is_pending(), "no place is free");
                place.turns.add_permits(1);
            }
            assert_eq!(look().await, Poll::Ready(Ok(7)));
            assert_eq!(place.counts(), (1, u64::from(gives)));
        }
    }

    #[tokio::test]
    async fn requests_go_on_while_a_call_has_no_place() {
        let (place, exchanges) = (Counted::new(true, 0), PendingRequests::default());
        let (sent, is_sent) = tokio::sync::oneshot::channel();
        let (go, may_go) = tokio::sync::oneshot::channel::<()>();
        let began = exchanges.clone();
        let call = drive_cooperatively(CpuMeter::default(), exchanges, Some(&place), async move {
            let _awaited = began.start(async move {
                may_go.await.unwrap();
                sent.send(()).unwrap();
                std::future::pending().await
            });
            std::future::pending::<()>().await;
        });
        let others = async {
            tokio::task::yield_now().await;
            go.send(()).unwrap();
            is_sent.await.unwrap();
        };
        tokio::select! {
            () = call => unreachable!("it waits for ever"),
            () = others => {}
        }
        assert_eq!(place.counts(), (1, 0));
    }
}
