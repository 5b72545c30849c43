//! Drivers of connections, and the tasks that poll them.
//!
//! A connection makes no progress unless it is polled. Usually its own task polls it. A request
//! that uses a connection exclusively polls it instead: the task of the call writes the request and
//! reads the response, and does not need to wake another task, which often is on another thread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};

type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future that drives a connection until it ends.
pub(crate) struct ConnectionDriver {
    /// `None` once the connection has ended.
    future: Mutex<Option<ConnectionFuture>>,
    /// True while a request drives the connection.
    is_leased: AtomicBool,
    /// The waker of the connection's own task.
    task_waker: AtomicWaker,
}

impl ConnectionDriver {
    pub(crate) fn new(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let future = Mutex::new(Some(Box::pin(future) as ConnectionFuture));
        Arc::new(Self {
            future,
            is_leased: AtomicBool::new(false),
            task_waker: AtomicWaker::new(),
        })
    }

    /// Leases the driver to a request, which must poll it until the lease ends.
    pub(crate) fn lease(self: &Arc<Self>) -> DriverLease {
        self.is_leased.store(true, Ordering::Release);
        DriverLease(Arc::clone(self))
    }

    /// Polls the connection from its own task, unless the driver is leased.
    pub(crate) fn poll_as_owner(&self, context: &mut Context<'_>) -> Poll<()> {
        // Registered before the check, so that the end of a lease after the check wakes the task.
        self.task_waker.register(context.waker());
        let mut future = self.lock();
        // Checked under the lock. Otherwise a request could lease and poll the connection between
        // the check and this poll, and events would wake this task instead of the request.
        if self.is_leased.load(Ordering::Acquire) {
            Poll::Pending
        } else {
            poll_locked(&mut future, context)
        }
    }

    /// Polls the connection. Events wake the task that polled it last.
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        poll_locked(&mut self.lock(), context)
    }

    fn lock(&self) -> MutexGuard<'_, Option<ConnectionFuture>> {
        self.future.lock()
    }
}

fn poll_locked(future: &mut Option<ConnectionFuture>, context: &mut Context<'_>) -> Poll<()> {
    let Some(work) = future.as_mut() else {
        return Poll::Ready(());
    };
    let done = work.as_mut().poll(context);
    if done.is_ready() {
        *future = None;
    }
    done
}

/// The owner of a connection's driver. Dropping it ends the connection, even while the driver is
/// leased.
pub(crate) struct DriverTask(pub(crate) Arc<ConnectionDriver>);

impl Drop for DriverTask {
    fn drop(&mut self) {
        // Dropped without the lock, because it wakes the task that waits for a response.
        let ended = self.0.lock().take();
        drop(ended);
    }
}

/// The lease of a driver to a request. Dropping it returns the driver.
pub(crate) struct DriverLease(Arc<ConnectionDriver>);

impl DriverLease {
    /// Polls the connection. Its sender observes errors and the end of the connection.
    pub(crate) fn poll_driver(&self, context: &mut Context<'_>) {
        let _ended = self.0.poll(context);
    }
}

impl Drop for DriverLease {
    fn drop(&mut self) {
        self.0.is_leased.store(false, Ordering::Release);
        self.0.task_waker.wake();
    }
}

/// Waits for a future that depends on the connection, and drives the connection in the meantime if
/// its driver is leased to this request.
///
/// Passing a request to the connection wakes the task that polled the driver last. So the driver is
/// first polled with a waker that does nothing. Otherwise the connection's own task would wake,
/// find that the driver is leased, and sleep again.
pub(crate) async fn drive_while_waiting<T>(
    lease: Option<&DriverLease>,
    waited: impl Future<Output = T>,
) -> T {
    let Some(loan) = lease else {
        return waited.await;
    };
    let mut waited = std::pin::pin!(waited);
    std::future::poll_fn(|context| {
        loan.poll_driver(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(done) = waited.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        // Processes the data that was passed to the connection just now, and registers the waker of
        // this request.
        loan.poll_driver(context);
        waited.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_polled_last_is_woken_and_its_own_task_when_the_work_is_given_back() {
        let [own, request] = [(); 2].map(|()| Arc::new(Count::default()));
        let [own_waker, request_waker] =
            [&own, &request].map(|count| Waker::from(Arc::clone(count)));
        let woken = || {
            (
                own.0.load(Ordering::Relaxed),
                request.0.load(Ordering::Relaxed),
            )
        };
        let (sender, receiver) = oneshot::channel::<()>();
        let work = ConnectionDriver::new(async { drop(receiver.await) });
        assert!(
            work.poll_as_owner(&mut Context::from_waker(&own_waker))
                .is_pending()
        );
        let loan = work.lease();
        loan.poll_driver(&mut Context::from_waker(&request_waker));
        // The connection's own task can be woken, but does not poll a leased driver.
        assert!(
            work.poll_as_owner(&mut Context::from_waker(&own_waker))
                .is_pending()
        );
        drop(sender);
        assert_eq!(woken(), (0, 1));
        drop(loan);
        assert_eq!(woken(), (1, 1));
        assert!(
            work.poll_as_owner(&mut Context::from_waker(&own_waker))
                .is_ready()
        );
    }

    #[tokio::test]
    async fn the_work_ends_with_its_owner_even_while_it_is_lent() {
        let (sender, receiver) = oneshot::channel::<()>();
        let owned = DriverTask(ConnectionDriver::new(async move {
            let _held = sender;
            std::future::pending::<()>().await;
        }));
        let loan = owned.0.lease();
        loan.poll_driver(&mut Context::from_waker(Waker::noop()));
        drop(owned);
        assert!(drive_while_waiting(Some(&loan), receiver).await.is_err());
    }

    #[test]
    fn what_is_handed_to_a_connection_wakes_nobody_but_its_request() {
        let [own, request] = [(); 2].map(|()| Arc::new(Count::default()));
        let [own_waker, request_waker] =
            [&own, &request].map(|count| Waker::from(Arc::clone(count)));
        let (sender, mut requests) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let work = ConnectionDriver::new(async move {
            while let Some(request) = requests.recv().await {
                request.send(()).unwrap();
            }
        });
        // The connection's own task waits for the next request.
        assert!(
            work.poll_as_owner(&mut Context::from_waker(&own_waker))
                .is_pending()
        );
        let loan = work.lease();
        let response = async {
            let (request, response) = oneshot::channel();
            sender.send(request).unwrap();
            response.await.unwrap();
        };
        let sent = pin!(drive_while_waiting(Some(&loan), response))
            .poll(&mut Context::from_waker(&request_waker));
        assert!(sent.is_ready());
        assert_eq!(
            (
                own.0.load(Ordering::Relaxed),
                request.0.load(Ordering::Relaxed)
            ),
            (0, 1)
        );
    }

    #[tokio::test]
    async fn a_request_that_waits_does_the_work() {
        let (sender, receiver) = oneshot::channel();
        let work = ConnectionDriver::new(async move {
            tokio::task::yield_now().await;
            sender.send("done").unwrap();
        });
        let loan = work.lease();
        assert_eq!(drive_while_waiting(Some(&loan), receiver).await, Ok("done"));
        loan.poll_driver(&mut Context::from_waker(Waker::noop()));
        drop(loan);
        poll_fn(|context| work.poll_as_owner(context)).await;
    }

    #[test]
    fn a_task_that_waits_for_the_lock_does_not_poll_after_a_lease() {
        let polls = Arc::new(AtomicUsize::new(0));
        let (entered, has_entered) = std::sync::mpsc::channel();
        let (resume, resumed) = std::sync::mpsc::channel();
        let counted = Arc::clone(&polls);
        let driver = ConnectionDriver::new(poll_fn(move |_| {
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                entered.send(()).unwrap();
                resumed.recv().unwrap();
            }
            Poll::Pending
        }));
        let poll = |waker: &Arc<Count>| {
            let waker = Waker::from(Arc::clone(waker));
            assert!(
                driver
                    .poll_as_owner(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        };
        let [first, second] = [(); 2].map(|()| Arc::new(Count::default()));
        std::thread::scope(|threads| {
            threads.spawn(|| poll(&first));
            has_entered.recv().unwrap();
            // The first poll holds the lock. The second one registers its waker, and waits.
            let waiting = threads.spawn(|| poll(&second));
            while Arc::strong_count(&second) < 3 {
                std::thread::yield_now();
            }
            let lease = driver.lease();
            resume.send(()).unwrap();
            waiting.join().unwrap();
            drop(lease);
        });
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }
}
