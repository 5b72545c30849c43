//! Thread pool for host computations that take long, so that neither the protocol's nor the guests'
//! threads wait for them.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use toolbay_model::Interrupt;
use toolbay_sandbox::cores;

use crate::limits::call_permit::CallPermit;

/// The thread pool. It has as many threads as there are processors, so that the system divides
/// processors evenly between them and the guests.
#[derive(Clone, Debug)]
pub(crate) struct OffloadPool {
    /// A runtime other than that of the guests. The guests' runtime has few blocking threads, and a
    /// guest can occupy one permanently.
    runtime: Handle,
    threads: Arc<Semaphore>,
    threads_per_client: usize,
}

/// One client's share of the threads.
#[derive(Clone, Debug)]
pub(crate) struct OffloadShare(Arc<Semaphore>);

/// The error of work that did not end before the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLate;

impl OffloadPool {
    /// Creates a pool on the current runtime.
    pub(crate) fn new() -> Self {
        let threads = cores();
        Self {
            runtime: Handle::current(),
            threads: Arc::new(Semaphore::new(threads)),
            threads_per_client: threads.div_ceil(2),
        }
    }

    /// Returns the share of a new client: half of the threads, so that one client's work never
    /// delays all others'.
    pub(crate) fn share(&self) -> OffloadShare {
        OffloadShare(Arc::new(Semaphore::new(self.threads_per_client)))
    }

    /// Runs `work` for a request that holds no permit, as soon as a thread is free. The duration of
    /// `work` must be bounded: dropping the future does not interrupt it. Returns `None` if the
    /// runtime is shutting down.
    pub(crate) async fn run_bounded<T: Send + 'static>(
        &self,
        share: &OffloadShare,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let threads = self.acquire_thread(share).await?;
        let job = self.runtime.spawn_blocking(move || {
            let result = work();
            drop(threads);
            result
        });
        job.await.ok()
    }

    /// Waits until the client's share and the pool both have a free thread. Returns `None` if the
    /// runtime is shutting down.
    async fn acquire_thread(&self, share: &OffloadShare) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = Arc::clone(&share.0).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        Some([own, all])
    }

    /// Runs `work` as soon as a thread is free. The call's permit is held until the work has ended,
    /// even if the future was dropped. Dropping the future, and the deadline, raise the interrupt,
    /// which `work` must check.
    ///
    /// # Errors
    ///
    /// The deadline passed before a thread was free, or the runtime is shutting down.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        share: &OffloadShare,
        permit: &Arc<CallPermit>,
        deadline: Instant,
        work: impl FnOnce(&Interrupt) -> T + Send + 'static,
    ) -> Result<T, TooLate> {
        let threads = timeout_at(deadline.into(), self.acquire_thread(share))
            .await
            .ok()
            .flatten()
            .ok_or(TooLate)?;
        let interrupt = Interrupt::with_deadline(deadline);
        let _raised = RaiseOnDrop(interrupt.clone());
        let held = (threads, Arc::clone(permit));
        let job = self.runtime.spawn_blocking(move || {
            let result = work(&interrupt);
            drop(held);
            result
        });
        match job.await {
            Ok(result) => Ok(result),
            // Like a panic on this thread: it fails only this call.
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(TooLate),
        }
    }
}

struct RaiseOnDrop(Interrupt);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::call::admission::tests::permit;

    #[tokio::test]
    async fn dropped_work_is_interrupted_and_holds_its_permit_until_it_ends() {
        let offload = OffloadPool::new();
        let permit = Arc::new(permit().await);
        let share = offload.share();
        let later = Instant::now() + Duration::from_mins(1);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let work = offload.run(&share, &permit, later, move |interrupt| {
            begun.send(()).unwrap();
            while !interrupt.is_due() {
                std::thread::yield_now();
            }
            may_end.recv().unwrap();
        });
        tokio::select! {
            _ = work => unreachable!("nobody has interrupted it"),
            _ = has_begun => {}
        }
        assert_eq!(Arc::strong_count(&permit), 2, "the thread holds one");
        end.send(()).unwrap();
        while Arc::strong_count(&permit) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn work_that_gets_no_thread_before_the_deadline_is_too_late() {
        let offload = OffloadPool {
            threads_per_client: 1,
            ..OffloadPool::new()
        };
        let permit = Arc::new(permit().await);
        let share = offload.share();
        let later = Instant::now() + Duration::from_mins(1);
        let (end, may_end) = mpsc::channel::<()>();
        let first = offload.run(&share, &permit, later, move |_| may_end.recv().unwrap());
        let second = async {
            let soon = Instant::now() + Duration::from_millis(20);
            let late = offload.run(&share, &permit, soon, |_| ()).await;
            end.send(()).unwrap();
            late
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first, second), (Ok(()), Err(TooLate)));
    }

    #[tokio::test]
    async fn another_client_has_threads_of_its_own() {
        let offload = OffloadPool {
            threads_per_client: 1,
            threads: Arc::new(Semaphore::new(2)),
            ..OffloadPool::new()
        };
        let permit = Arc::new(permit().await);
        let later = Instant::now() + Duration::from_mins(1);
        let greedy = offload.share();
        let other = offload.share();
        let (end, may_end) = mpsc::channel::<()>();
        let first = offload.run(&greedy, &permit, later, move |_| may_end.recv().unwrap());
        let second = offload.run(&greedy, &permit, later, |_| ());
        let third = async {
            let third = offload.run(&other, &permit, later, |_| 3).await;
            end.send(()).unwrap();
            third
        };
        let (first, second, third) = tokio::join!(first, second, third);
        assert_eq!((first, second, third), (Ok(()), Ok(()), Ok(3)));
    }
}
