//! Dispatch of calls to the guest runtime.
//!
//! A hop from one thread to another can cost as much as a short call: the other thread sleeps,
//! perhaps on an idle core. Therefore a call that arrives alone on an idle server starts on the
//! thread that received it, which polls it once. Most calls end with this poll. A call that has to
//! wait, or has used its first time slice, continues on the guest runtime, and so does a call that
//! is known to take longer ([`move_to_guest_runtime`]). A guest can thus delay the protocol by one
//! time slice and one host call, and only until its plugin is known to be slow.
//!
//! For a lone call that does not start on the receiving thread, there is another way to save a hop.
//! When a future is spawned from outside the runtime, the Tokio worker that picks it up wakes a
//! second worker. That one finds no work and becomes the worker that waits for I/O. Whatever the
//! call waits for later then wakes the second worker. Therefore a lone call arrives as I/O does,
//! through a pipe: the worker that waits for I/O runs the call, no other worker is woken, and the
//! same worker waits for the responses to its requests.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;

type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// True while this thread makes the first poll of a call that is not yet on the guest runtime.
    static IS_FIRST_POLL: Cell<bool> = const { Cell::new(false) };
}

/// Moves the call to the guest runtime, because its next step may take long. Returns at once if the
/// call is already there.
pub(crate) async fn move_to_guest_runtime() {
    // No wake-up is needed: the call is polled again as soon as it has moved.
    poll_fn(|_| {
        if IS_FIRST_POLL.get() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// The dispatcher through which calls reach the guest runtime.
pub(crate) struct CallDispatcher {
    runtime: Handle,
    queue: Arc<DispatchQueue>,
    /// Park count of the receiving thread's runtime at the last call.
    last_park_count: AtomicU64,
}

struct DispatchQueue {
    /// Number of calls that are running or queued.
    active_calls: AtomicUsize,
    /// The call that waits for the pipe task. There is at most one, because only a lone call waits.
    waiting: Mutex<Option<CallFuture>>,
    /// Carries one byte for each waiting call.
    wake_pipe: PipeWriter,
}

impl CallDispatcher {
    /// Starts the task that reads the pipe. It ends with the runtime.
    pub(crate) fn start(runtime: &Handle) -> io::Result<Self> {
        let (pipe_reader, pipe_writer) = io::pipe()?;
        let _context = runtime.enter();
        let mut rung = Receiver::from_owned_fd(OwnedFd::from(pipe_reader))?;
        let queue = Arc::new(DispatchQueue {
            active_calls: AtomicUsize::new(0),
            waiting: Mutex::default(),
            wake_pipe: pipe_writer,
        });
        let task_queue = Arc::clone(&queue);
        runtime.spawn(async move {
            // The buffer is larger than any read, so a short read tells Tokio that the pipe is
            // empty.
            while let Ok(1..) = rung.read(&mut [0; 8]).await {
                if let Some(work) = task_queue.take() {
                    tokio::spawn(work);
                }
            }
        });
        Ok(Self {
            runtime: runtime.clone(),
            queue,
            last_park_count: AtomicU64::new(0),
        })
    }

    /// Runs a call. If other calls run, or `busy` returns that other guests run, the call is
    /// spawned as usual: a worker that runs a guest does not wait for I/O, so another one has to be
    /// woken.
    pub(crate) fn dispatch(&self, work: CallFuture, busy: impl FnOnce() -> bool) {
        let alone = self.queue.active_calls.fetch_add(1, Ordering::Relaxed) == 0;
        let inside = ActiveCall(Arc::clone(&self.queue));
        let work = Box::pin(async move {
            let _inside = inside;
            work.await;
        });
        if !alone || busy() {
            self.runtime.spawn(work);
        } else if self.was_idle() {
            self.poll_first(work);
        } else {
            self.enqueue(work);
        }
    }

    /// Returns whether the runtime of this thread has been idle since the last check. It must be a
    /// single-threaded runtime. If it was not idle, other requests may be ready, and they can be
    /// received while a guest runs.
    fn was_idle(&self) -> bool {
        let Ok(runtime) = Handle::try_current() else {
            return false;
        };
        let metrics = runtime.metrics();
        if metrics.num_workers() != 1 {
            return false;
        }
        let waits = metrics.worker_park_count(0);
        self.last_park_count.swap(waits, Ordering::Relaxed) != waits
    }

    /// Polls a call once and leaves the rest to the pipe task.
    fn poll_first(&self, mut work: CallFuture) {
        let first = catch_unwind(AssertUnwindSafe(|| {
            // Everything that the call spawns or waits for belongs to the guest runtime from the
            // start.
            let _context = self.runtime.enter();
            let _begins = FirstPoll::start();
            // A wake-up before the next poll is not lost, because the call is polled again in any
            // case.
            work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }));
        // A panic ends only the call, as it would end only a spawned task.
        if matches!(first, Ok(Poll::Pending)) {
            self.enqueue(work);
        }
    }

    /// Leaves the call to the pipe task.
    fn enqueue(&self, work: CallFuture) {
        *self.queue.lock() = Some(work);
        // The pipe holds at most one byte, so this write never blocks.
        if (&self.queue.wake_pipe).write_all(&[0]).is_err()
            && let Some(work) = self.queue.take()
        {
            self.runtime.spawn(work);
        }
    }
}

impl DispatchQueue {
    fn lock(&self) -> MutexGuard<'_, Option<CallFuture>> {
        self.waiting.lock()
    }

    fn take(&self) -> Option<CallFuture> {
        self.lock().take()
    }
}

/// Guard that marks the first poll of a call.
struct FirstPoll;

impl FirstPoll {
    fn start() -> Self {
        IS_FIRST_POLL.set(true);
        Self
    }
}

impl Drop for FirstPoll {
    fn drop(&mut self) {
        IS_FIRST_POLL.set(false);
    }
}

/// Guard that counts a call as running until it is dropped.
struct ActiveCall(Arc<DispatchQueue>);

impl Drop for ActiveCall {
    fn drop(&mut self) {
        self.0.active_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// Timeout of a test for events that must happen at once.
    const DEADLINE: Duration = Duration::from_mins(1);

    fn runtime() -> (Runtime, CallDispatcher) {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let entrance = CallDispatcher::start(runtime.handle()).unwrap();
        (runtime, entrance)
    }

    #[test]
    fn calls_one_after_the_other_all_run() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        for n in 0..1000 {
            let sender = sender.clone();
            entrance.dispatch(Box::pin(async move { sender.send(n).unwrap() }), || false);
            assert_eq!(receiver.recv_timeout(DEADLINE), Ok(n));
        }
    }

    #[test]
    fn a_call_beside_another_does_not_wait_for_the_pipe_task() {
        let (_runtime, entrance) = runtime();
        let started = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let first = async move {
            started.0.send(()).unwrap();
            // Blocks its worker, like a guest that computes.
            held.recv_timeout(DEADLINE).unwrap();
        };
        entrance.dispatch(Box::pin(first), || false);
        started.1.recv_timeout(DEADLINE).unwrap();
        let (sender, receiver) = mpsc::channel();
        entrance.dispatch(Box::pin(async move { sender.send(()).unwrap() }), || {
            unreachable!("another call is inside")
        });
        receiver.recv_timeout(DEADLINE).unwrap();
        // The second call leaves a moment after it has sent its message. The first one stays.
        while entrance.queue.active_calls.load(Ordering::Relaxed) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(entrance.queue.active_calls.load(Ordering::Relaxed), 1);
        release.send(()).unwrap();
    }

    #[test]
    fn a_call_beside_other_guests_is_spawned() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        // While the slot is locked, no call can wait in it.
        let _locked = entrance.queue.lock();
        entrance.dispatch(Box::pin(async move { sender.send(()).unwrap() }), || true);
        receiver.recv_timeout(DEADLINE).unwrap();
    }

    #[test]
    fn a_call_that_ended_is_no_longer_counted_even_after_a_panic() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        entrance.dispatch(
            Box::pin(async move {
                let _dropped = sender;
                panic!("as a call must not");
            }),
            || false,
        );
        assert_eq!(
            receiver.recv_timeout(DEADLINE),
            Err::<(), _>(mpsc::RecvTimeoutError::Disconnected)
        );
        while entrance.queue.active_calls.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }

    /// Runs `work` on a single-threaded runtime, such as that of the protocol, that has just been
    /// idle.
    fn after_idle<T>(work: impl Future<Output = T>) -> T {
        let protocol = Builder::new_current_thread().enable_all().build().unwrap();
        protocol.block_on(async {
            let metrics = Handle::current().metrics();
            let waits = move || {
                while metrics.worker_park_count(0) == 0 {
                    std::thread::yield_now();
                }
            };
            tokio::task::spawn_blocking(waits).await.unwrap();
            work.await
        })
    }

    #[test]
    fn a_call_that_is_alone_begins_on_the_thread_that_received_it() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        let here = std::thread::current().id();
        after_idle(async {
            let first = sender.clone();
            entrance.dispatch(
                Box::pin(async move { first.send(std::thread::current().id()).unwrap() }),
                || false,
            );
            assert_eq!(receiver.try_recv(), Ok(here));
            // The next call finds that the thread has not been idle since.
            entrance.dispatch(
                Box::pin(async move { sender.send(std::thread::current().id()).unwrap() }),
                || false,
            );
            assert_ne!(receiver.recv_timeout(DEADLINE).unwrap(), here);
        });
    }

    #[test]
    fn what_waits_or_moves_goes_on_on_the_guests_runtime() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        let here = std::thread::current().id();
        after_idle(async {
            let call = async move {
                let begun = std::thread::current().id();
                move_to_guest_runtime().await;
                let then = std::thread::current().id();
                move_to_guest_runtime().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                sender.send((begun, then)).unwrap();
            };
            entrance.dispatch(Box::pin(call), || false);
        });
        // The runtime that received the call is gone, with its timers.
        let (begun, then) = receiver.recv_timeout(DEADLINE).unwrap();
        assert_eq!(begun, here);
        assert_ne!(then, here);
    }

    #[test]
    fn a_call_that_panics_at_once_ends_alone() {
        let (_runtime, entrance) = runtime();
        after_idle(async {
            entrance.dispatch(Box::pin(async { panic!("as a call must not") }), || false);
        });
        assert!(!IS_FIRST_POLL.get());
        assert_eq!(entrance.queue.active_calls.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_call_that_never_entered_is_dropped_with_the_runtime() {
        let (runtime, entrance) = runtime();
        drop(runtime);
        let (sender, receiver) = mpsc::channel::<()>();
        entrance.dispatch(Box::pin(async move { drop(sender) }), || false);
        drop(entrance);
        assert_eq!(
            receiver.recv_timeout(DEADLINE),
            Err(mpsc::RecvTimeoutError::Disconnected)
        );
    }
}
