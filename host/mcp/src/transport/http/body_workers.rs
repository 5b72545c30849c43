//! Handles long bodies on other threads than the protocol's: decoding megabytes takes tens of
//! milliseconds, during which no other client would receive a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::available_parallelism;

use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_blocking;

/// Maximum length of a body that is handled on the protocol's thread, in bytes. That is less than a
/// millisecond of work.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// Permits for the threads for long bodies. There is one fewer than the machine has cores, but at
/// least one.
pub(super) struct BodyWorkers {
    threads: Arc<Semaphore>,
}

/// Waker of a future between two of its polls.
struct StepWaker(Notify);

impl Wake for StepWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl BodyWorkers {
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            threads: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
        }
    }

    /// Runs `work` on a body of `length` bytes. For a long body, each poll runs on a blocking
    /// thread and needs a permit. While the work waits for something else, it holds no permit.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        length: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if length <= MAX_INLINE_BYTES {
            return work.await;
        }
        let mut work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
        let woken = Arc::new(StepWaker(Notify::new()));
        loop {
            // The semaphore is never closed.
            let thread = Arc::clone(&self.threads).acquire_owned().await.ok();
            let waker = Waker::from(Arc::clone(&woken));
            let step = spawn_blocking(move || {
                let _thread = thread;
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                (work, polled)
            });
            match step.await {
                Ok((_, Poll::Ready(done))) => return done,
                Ok((rest, Poll::Pending)) => work = rest,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime is shutting down, and drops this future too.
                Err(_) => match std::future::pending::<Infallible>().await {},
            }
            woken.0.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn long_work_has_a_thread_of_its_own_and_short_work_has_none() {
        let here = thread::current().id();
        let lane = BodyWorkers::new();
        assert_eq!(
            lane.run(MAX_INLINE_BYTES, async { thread::current().id() })
                .await,
            here
        );
        assert_ne!(
            lane.run(MAX_INLINE_BYTES + 1, async { thread::current().id() })
                .await,
            here
        );
    }

    #[tokio::test]
    async fn the_protocol_goes_on_while_long_work_computes() {
        let lane = BodyWorkers::new();
        let (release, blocked) = mpsc::channel();
        // On the protocol's thread, this would block forever.
        let long = lane.run(usize::MAX, async move { blocked.recv().unwrap() });
        let (seen, ()) = tokio::join!(long, async { release.send(7).unwrap() });
        assert_eq!(seen, 7);
    }

    #[tokio::test]
    async fn work_that_waits_holds_no_thread() {
        let lane = Arc::new(BodyWorkers::new());
        let (release, waiting) = tokio::sync::oneshot::channel::<u32>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let held = Arc::clone(&lane);
        let stuck = tokio::spawn(async move {
            held.run(usize::MAX, async move {
                begun.send(()).unwrap();
                waiting.await.unwrap()
            })
            .await
        });
        has_begun.await.unwrap();
        for n in 0..10 {
            assert_eq!(lane.run(usize::MAX, async move { n }).await, n);
        }
        release.send(3).unwrap();
        assert_eq!(stuck.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_panic_is_the_works_own() {
        let lane = BodyWorkers::new();
        let panicking = async { lane.run(usize::MAX, async { panic!("boom") }).await };
        let caught =
            futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(panicking)).await;
        assert!(caught.is_err());
        assert_eq!(lane.run(usize::MAX, async { 1 }).await, 1);
    }
}
