//! How calls reach the guests' runtime.
//!
//! Tokio takes a future that another thread spawns for the first of many: the worker that finds it wakes a second one,
//! which finds nothing and waits for input and output from then on. Whatever the call waits for later wakes that second
//! worker, on a processor that may have gone to sleep and knows nothing of the call. For a call that is alone, this
//! costs as much as an HTTP request. So it arrives as input does: the worker that waits for it runs the call, nobody
//! else is woken, and the same worker waits for the responses to its requests.

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where calls enter the guests' runtime.
pub(crate) struct Entrance {
    runtime: Handle,
    door: Arc<Door>,
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
        Ok(Self { runtime: runtime.clone(), door })
    }

    /// Lets a call in. If others are inside, or `busy` says that other guests are, it is spawned as usual: a worker
    /// that runs a guest does not listen, so another one has to be woken.
    pub(crate) fn admit(&self, work: Work, busy: impl FnOnce() -> bool) {
        let alone = self.door.inside.fetch_add(1, Ordering::Relaxed) == 0;
        let inside = Inside(Arc::clone(&self.door));
        let work = async move {
            let _inside = inside;
            work.await;
        };
        if !alone || busy() {
            self.runtime.spawn(work);
            return;
        }
        *self.door.lock() = Some(Box::pin(work));
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
