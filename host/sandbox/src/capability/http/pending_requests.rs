//! The HTTP requests of one call that have no response yet.
//!
//! They are polled by the task of the call: whenever it runs, they make progress, whatever the
//! guest waits for. A separate task for each request would have to be woken before the guest, often
//! on another thread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;
use http::Response;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use wasmtime_wasi::p2::Pollable;
use wasmtime_wasi_http::{Error, WasiBody};

/// The outcome of a request.
pub(crate) type ResponseResult = Result<Response<WasiBody>, Error>;

/// The work that remains after the response head, whether or not the guest still uses the response.
pub(crate) type ResponseDriver = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// A request in flight.
pub(crate) type SendFuture =
    Box<dyn Future<Output = Result<(Response<WasiBody>, ResponseDriver), Error>> + Send>;

/// The requests in flight. Clones share them. Their number is bounded by the guest's handles,
/// because dropping a handle cancels its request.
#[derive(Clone, Default)]
pub(crate) struct PendingRequests(Arc<RequestList>);

#[derive(Default)]
struct RequestList {
    open: Mutex<Vec<PendingRequest>>,
    /// The waker of the call's task.
    task: Arc<AtomicWaker>,
}

struct PendingRequest {
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
    signal: Arc<WakeFlag>,
    waker: Waker,
}

/// The wake-up flag of a request.
struct WakeFlag {
    raised: AtomicBool,
    /// Only the waker, not all of the shared state: a waker must not keep the requests of a
    /// finished call alive.
    task: Arc<AtomicWaker>,
}

impl PendingRequests {
    /// Starts a request. It makes progress in [`PendingRequests::advance`] and ends when its handle
    /// is dropped.
    pub(crate) fn start(
        &self,
        answer: impl Future<Output = Result<(Response<WasiBody>, ResponseDriver), Error>>
        + Send
        + 'static,
    ) -> ResponseHandle {
        let (mut sender, receiver) = oneshot::channel();
        let work = Box::pin(async move {
            tokio::select! {
                biased;
                () = sender.closed() => {}
                answer = answer => match answer {
                    Ok((response, rest)) => {
                        drop(sender.send(Ok(response)));
                        // Errors here concern a body that the guest has dropped.
                        drop(Box::into_pin(rest).await);
                    }
                    Err(error) => drop(sender.send(Err(error))),
                },
            }
        });
        let signal = Arc::new(WakeFlag {
            raised: AtomicBool::new(true),
            task: Arc::clone(&self.0.task),
        });
        let waker = Waker::from(Arc::clone(&signal));
        self.0.lock().push(PendingRequest {
            work,
            signal,
            waker,
        });
        ResponseHandle::Pending(receiver)
    }

    /// Polls all requests that were woken, and wakes `task` when one can make more progress.
    ///
    /// This is not a `FuturesUnordered`, because that wakes the task each time it has polled all of
    /// its futures: a call would be polled twice for each request.
    pub(crate) fn advance(&self, task: &Waker) {
        let mut open = self.0.lock();
        if open.is_empty() {
            return;
        }
        self.0.task.register(task);
        open.retain_mut(
            |PendingRequest {
                 work,
                 signal,
                 waker,
             }| {
                let raised = signal.raised.swap(false, Ordering::AcqRel);
                !raised
                    || work
                        .as_mut()
                        .poll(&mut Context::from_waker(waker))
                        .is_pending()
            },
        );
    }
}

impl RequestList {
    fn lock(&self) -> MutexGuard<'_, Vec<PendingRequest>> {
        self.open.lock()
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raised.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// The guest's handle of a request, with the response once it has arrived.
pub(crate) enum ResponseHandle {
    Pending(oneshot::Receiver<ResponseResult>),
    Ready(ResponseResult),
    /// The guest has taken the response.
    Taken,
}

impl ResponseHandle {
    /// Takes the response. Returns `None` if it has not arrived yet, and an error if it was already
    /// taken.
    pub(crate) fn take(&mut self) -> Option<Result<ResponseResult, ()>> {
        match std::mem::replace(self, Self::Taken) {
            pending @ Self::Pending(_) => {
                *self = pending;
                None
            }
            Self::Ready(answer) => Some(Ok(answer)),
            Self::Taken => Some(Err(())),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for ResponseHandle {
    async fn ready(&mut self) {
        if let Self::Pending(receiver) = self {
            let gone = |_closed| {
                Err(Error::InternalError(Some(
                    "the request was abandoned".to_owned(),
                )))
            };
            *self = Self::Ready(receiver.await.unwrap_or_else(gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Waits for `future` as a call does: the requests make progress at the same time.
    async fn beside<T>(exchanges: &PendingRequests, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        poll_fn(|task| {
            exchanges.advance(task.waker());
            future.as_mut().poll(task)
        })
        .await
    }

    #[tokio::test]
    async fn an_answer_is_taken_once_and_not_before_it_is_there() {
        let exchanges = PendingRequests::default();
        let mut awaited = exchanges.start(async { Err(Error::HttpRequestDenied) });
        assert!(awaited.take().is_none());
        beside(&exchanges, awaited.ready()).await;
        assert!(matches!(
            awaited.take(),
            Some(Ok(Err(Error::HttpRequestDenied)))
        ));
        assert!(matches!(awaited.take(), Some(Err(()))));
    }

    #[tokio::test]
    async fn requests_advance_while_the_guest_waits_for_something_else() {
        let exchanges = PendingRequests::default();
        let (sender, receiver) = oneshot::channel();
        let _awaited = exchanges.start(async move {
            tokio::task::yield_now().await;
            sender.send("sent").unwrap();
            pending().await
        });
        assert_eq!(beside(&exchanges, receiver).await, Ok("sent"));
    }

    #[test]
    fn the_call_is_woken_only_when_there_is_something_to_do() {
        #[derive(Default)]
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let exchanges = PendingRequests::default();
        let count = Arc::new(Count::default());
        let task = Waker::from(Arc::clone(&count));
        let (sender, receiver) = oneshot::channel();
        let mut awaited = exchanges.start(async { receiver.await.unwrap() });
        let _silent = exchanges.start(pending());
        exchanges.advance(&task);
        exchanges.advance(&task);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        drop(sender.send(Err(Error::HttpRequestDenied)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        exchanges.advance(&task);
        let mut ready = awaited.ready();
        assert!(
            ready
                .as_mut()
                .poll(&mut Context::from_waker(&task))
                .is_ready()
        );
        assert_eq!(exchanges.0.lock().len(), 1);
    }

    #[tokio::test]
    async fn requests_end_with_the_call() {
        let exchanges = PendingRequests::default();
        let (sender, receiver) = oneshot::channel::<()>();
        let awaited = exchanges.start(async move {
            let _held = sender;
            pending().await
        });
        beside(&exchanges, tokio::task::yield_now()).await;
        drop((exchanges, awaited));
        assert!(receiver.await.is_err(), "the request is gone");
    }

    #[tokio::test]
    async fn dropping_the_handle_gives_up_the_request() {
        let exchanges = PendingRequests::default();
        let (sender, receiver) = oneshot::channel::<()>();
        let awaited = exchanges.start(async move {
            let _held = sender;
            pending().await
        });
        beside(&exchanges, tokio::task::yield_now()).await;
        drop(awaited);
        assert!(
            beside(&exchanges, receiver).await.is_err(),
            "the request is gone"
        );
        assert!(exchanges.0.lock().is_empty());
    }
}
