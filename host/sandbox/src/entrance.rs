//! How calls reach the guests' runtime.
//!
//! Each hop from one thread to another costs a short call as much as its guest: the other thread sleeps, perhaps on a
//! processor that sleeps, too. So a call that is alone, on a server that had nothing to do, begins on the thread that
//! received it: it is polled there once. Most calls end with that. What has to wait, or has used its first slice, goes on
//! on the guests' runtime, and so does what is known to take longer ([`moved`]). A guest can thus delay the protocol by one
//! slice and one host call, and only until its plugin is known for that.
//!
//! For what is not done here, there is another way to save a hop. Tokio takes a future that another thread
//! spawns for the first of many: the worker that finds it wakes a second one, which finds nothing and waits for input and
//! output from then on. Whatever the call waits for later wakes that second worker. So a call that is alone arrives as
//! input does: the worker that waits for it runs the call, nobody else is woken, and the same worker waits for the
//! responses to its requests.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// Whether this thread makes the first step of a call that is not yet on the guests' runtime.
    static BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// Goes on on the guests' runtime: what comes next may take long. Returns at once to a call that is there.
pub(crate) async fn moved() {
    // Nobody has to wake the call: it is polled again as soon as it has moved.
    poll_fn(|_| if BEGINS.get() { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Where calls enter the guests' runtime.
pub(crate) struct Entrance {
    runtime: Handle,
    door: Arc<Door>,
    /// How often the thread that received the last call had waited for something to do.
    waits: AtomicU64,
}

struct Door {
    /// Calls that have entered and not ended.
    inside: AtomicUsize,
    /// The call that waits for the attendant: at most one, because only a call that is alone does.
    waiting: Mutex<Option<Work>>,
    /// A byte for each call that waits.
    bell: PipeWriter,
}

impl Entrance {
    /// Starts the attendant, a task of the runtime that ends with it.
    pub(crate) fn open(runtime: &Handle) -> io::Result<Self> {
        let (rung, bell) = io::pipe()?;
        let _context = runtime.enter();
        let mut rung = Receiver::from_owned_fd(OwnedFd::from(rung))?;
        let door = Arc::new(Door { inside: AtomicUsize::new(0), waiting: Mutex::default(), bell });
        let attended = Arc::clone(&door);
        runtime.spawn(async move {
            // More room than bytes: what fills less of it is known to be all there is.
            while let Ok(1..) = rung.read(&mut [0; 8]).await {
                if let Some(work) = attended.take() {
                    tokio::spawn(work);
                }
            }
        });
        Ok(Self { runtime: runtime.clone(), door, waits: AtomicU64::new(0) })
    }

    /// Lets a call in. If others are inside, or `busy` says that other guests are, it is spawned as usual: a worker
    /// that runs a guest does not listen, so another one has to be woken.
    pub(crate) fn admit(&self, work: Work, busy: impl FnOnce() -> bool) {
        let alone = self.door.inside.fetch_add(1, Ordering::Relaxed) == 0;
        let inside = Inside(Arc::clone(&self.door));
        let work = Box::pin(async move {
            let _inside = inside;
            work.await;
        });
        if !alone || busy() {
            self.runtime.spawn(work);
        } else if self.had_nothing_to_do() {
            self.begin(work);
        } else {
            self.ring(work);
        }
    }

    /// Whether the runtime of this thread, which has no other, waited since it was asked last. If it did not, other
    /// requests may be ready, and they can be received while a guest runs.
    fn had_nothing_to_do(&self) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let metrics = runtime.metrics();
        if metrics.num_workers() != 1 {
            return false;
        }
        let waits = metrics.worker_park_count(0);
        self.waits.swap(waits, Ordering::Relaxed) != waits
    }

    /// Makes the first step of a call, and leaves the rest to the attendant.
    fn begin(&self, mut work: Work) {
        let first = catch_unwind(AssertUnwindSafe(|| {
            // What it spawns, and what it waits for, belongs to the guests' runtime already.
            let _context = self.runtime.enter();
            let _begins = Begins::here();
            // What wakes it before it is polled again there is not lost: it is polled again in any case.
            work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }));
        // Unwinding ends a call that is spawned, and no more than that.
        if matches!(first, Ok(Poll::Pending)) {
            self.ring(work);
        }
    }

    /// Leaves the call to the attendant.
    fn ring(&self, work: Work) {
        *self.door.lock() = Some(work);
        // The pipe holds one byte at most, so this never waits for room.
        if (&self.door.bell).write_all(&[0]).is_err()
            && let Some(work) = self.door.take()
        {
            self.runtime.spawn(work);
        }
    }
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Work> {
        self.lock().take()
    }
}

/// The first step of a call, until this is dropped.
struct Begins;

impl Begins {
    fn here() -> Self {
        BEGINS.set(true);
        Self
    }
}

impl Drop for Begins {
    fn drop(&mut self) {
        BEGINS.set(false);
    }
}

/// A call that is inside until this is dropped.
struct Inside(Arc<Door>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// How long a test waits for what must come at once.
    const DEADLINE: Duration = Duration::from_mins(1);

    fn runtime() -> (Runtime, Entrance) {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let entrance = Entrance::open(runtime.handle()).unwrap();
        (runtime, entrance)
    }

    #[test]
    fn calls_one_after_the_other_all_run() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        for n in 0..1000 {
            let sender = sender.clone();
            entrance.admit(Box::pin(async move { sender.send(n).unwrap() }), || false);
            assert_eq!(receiver.recv_timeout(DEADLINE), Ok(n));
        }
    }

    #[test]
    fn a_call_beside_another_does_not_wait_for_the_attendant() {
        let (_runtime, entrance) = runtime();
        let (started, (release, held)) = (mpsc::channel(), mpsc::channel::<()>());
        let first = async move {
            started.0.send(()).unwrap();
            // Keeps its worker, as a guest that computes does.
            held.recv_timeout(DEADLINE).unwrap();
        };
        entrance.admit(Box::pin(first), || false);
        started.1.recv_timeout(DEADLINE).unwrap();
        let (sender, receiver) = mpsc::channel();
        entrance.admit(Box::pin(async move { sender.send(()).unwrap() }), || unreachable!("another call is inside"));
        receiver.recv_timeout(DEADLINE).unwrap();
        // The second one leaves a moment after it has said so; the first one stays.
        while entrance.door.inside.load(Ordering::Relaxed) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(entrance.door.inside.load(Ordering::Relaxed), 1);
        release.send(()).unwrap();
    }

    #[test]
    fn a_call_beside_other_guests_is_spawned() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        // With the door locked, nobody can wait at it.
        let _locked = entrance.door.lock();
        entrance.admit(Box::pin(async move { sender.send(()).unwrap() }), || true);
        receiver.recv_timeout(DEADLINE).unwrap();
    }

    #[test]
    fn who_has_left_is_no_longer_inside_even_after_a_panic() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        entrance.admit(
            Box::pin(async move {
                let _dropped = sender;
                panic!("as a call must not");
            }),
            || false,
        );
        assert_eq!(receiver.recv_timeout(DEADLINE), Err::<(), _>(mpsc::RecvTimeoutError::Disconnected));
        while entrance.door.inside.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }

    /// A runtime with one thread, such as the protocol's, that has just waited for something.
    fn waited<T>(work: impl Future<Output = T>) -> T {
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
        waited(async {
            let first = sender.clone();
            entrance.admit(Box::pin(async move { first.send(std::thread::current().id()).unwrap() }), || false);
            assert_eq!(receiver.try_recv(), Ok(here));
            // The next one finds that the thread has not waited since.
            entrance.admit(Box::pin(async move { sender.send(std::thread::current().id()).unwrap() }), || false);
            assert_ne!(receiver.recv_timeout(DEADLINE).unwrap(), here);
        });
    }

    #[test]
    fn what_waits_or_moves_goes_on_on_the_guests_runtime() {
        let (_runtime, entrance) = runtime();
        let (sender, receiver) = mpsc::channel();
        let here = std::thread::current().id();
        waited(async {
            let call = async move {
                let begun = std::thread::current().id();
                moved().await;
                let then = std::thread::current().id();
                moved().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                sender.send((begun, then)).unwrap();
            };
            entrance.admit(Box::pin(call), || false);
        });
        // The runtime that received it is gone, with its timers.
        let (begun, then) = receiver.recv_timeout(DEADLINE).unwrap();
        assert_eq!(begun, here);
        assert_ne!(then, here);
    }

    #[test]
    fn a_call_that_panics_at_once_ends_alone() {
        let (_runtime, entrance) = runtime();
        waited(async { entrance.admit(Box::pin(async { panic!("as a call must not") }), || false) });
        assert!(!BEGINS.get());
        assert_eq!(entrance.door.inside.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_call_that_never_entered_is_dropped_with_the_runtime() {
        let (runtime, entrance) = runtime();
        drop(runtime);
        let (sender, receiver) = mpsc::channel::<()>();
        entrance.admit(Box::pin(async move { drop(sender) }), || false);
        drop(entrance);
        assert_eq!(receiver.recv_timeout(DEADLINE), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
