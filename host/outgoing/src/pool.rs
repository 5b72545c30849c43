//! The connection pool of one plugin.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Context;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolbay_policy::UrlOrigin;

use crate::connection::{
    ConnectionSlot, ConnectionTasks, HttpConnection, MAX_CONCURRENT_STREAMS, RequestSender,
};
use crate::connection_driver::{ConnectionDriver, DriverLease, DriverTask};
use crate::error::SendError;
use crate::metered_transport::ReadAllowance;
use crate::pool_partition::PoolPartition;
use crate::socket_budget::IdleSocketHolder;
use crate::upload_body::UploadBody;
use crate::upload_state::UploadState;

/// Time after which an idle connection is closed. Many servers close theirs after a minute, and a
/// request fails if the server closes the connection at the same time.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The key of a connection. Only requests with the same key reuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolKey {
    pub(crate) origin: UrlOrigin,
    pub(crate) partition: PoolPartition,
}

/// A pool with a limited number of connections. Idle connections are evicted when the limit is
/// reached.
pub(crate) struct ConnectionPool {
    state: Mutex<PoolState>,
    permits: Arc<Semaphore>,
    /// Notified when a connection became idle or ended.
    changed: Arc<Notify>,
    /// Held by the next request that waits for a connection: first come, first served.
    turn: tokio::sync::Mutex<()>,
    /// Time after which an idle connection is closed.
    idle: Duration,
    close: CancellationToken,
}

#[derive(Default)]
struct PoolState {
    connections: Vec<PooledConnection>,
    next_id: u64,
}

struct PooledConnection {
    id: u64,
    key: PoolKey,
    state: ConnectionState,
    /// Start of the idle time. `None` while a request uses the connection.
    idle_since: Option<Instant>,
    allowance: ReadAllowance,
    close: CancellationToken,
}

enum ConnectionState {
    /// One request at a time takes the sender and drives the connection.
    Http1(
        Option<http1::SendRequest<UploadBody>>,
        Arc<ConnectionDriver>,
    ),
    /// The sender, and the number of requests that use it, at most [`MAX_CONCURRENT_STREAMS`].
    Http2(http2::SendRequest<UploadBody>, usize),
}

/// The result of a checkout.
pub(crate) enum PoolCheckout {
    /// An existing connection.
    Existing(ConnectionLease),
    /// A slot for a new connection.
    NewSlot(ConnectionSlot),
}

impl ConnectionPool {
    /// Creates a pool of at most this many connections, and at least one. Each is closed after
    /// [`IDLE_TIMEOUT`] without a request. All of them end with `close`.
    pub(crate) fn new(connections: usize, close: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            permits: Arc::new(Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS))),
            changed: Arc::default(),
            turn: tokio::sync::Mutex::default(),
            idle: IDLE_TIMEOUT,
            close,
        })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    /// Returns a connection for the key, or a slot for a new one. Waits until one is available.
    pub(crate) async fn checkout(self: &Arc<Self>, key: &PoolKey) -> PoolCheckout {
        if let Some(lease) = self.reuse(key).await {
            return PoolCheckout::Existing(lease);
        }
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Changes after this point are not missed.
            changed.as_mut().enable();
            if let Some(lease) = self.reuse(key).await {
                return PoolCheckout::Existing(lease);
            }
            if let Ok(permit) = self.permits.clone().try_acquire_owned() {
                return PoolCheckout::NewSlot(ConnectionSlot::new(permit, self.changed.clone()));
            }
            self.close_oldest_idle();
            changed.await;
        }
    }

    /// Adds a new connection, and returns its first lease.
    pub(crate) fn add(
        self: &Arc<Self>,
        key: PoolKey,
        established: HttpConnection,
        tasks: &ConnectionTasks,
    ) -> ConnectionLease {
        let HttpConnection {
            sender,
            allowance,
            driver,
        } = established;
        let close = tasks.close.clone();
        let mut kept = self.lock();
        let id = kept.next_id;
        kept.next_id += 1;
        let (state, loan) = match &sender {
            RequestSender::Http1(_) => (
                ConnectionState::Http1(None, Arc::clone(&driver)),
                Some(driver.lease()),
            ),
            RequestSender::Http2(sender) => (ConnectionState::Http2(sender.clone(), 1), None),
        };
        kept.connections.push(PooledConnection {
            id,
            key,
            state,
            idle_since: None,
            allowance: allowance.clone(),
            close: close.clone(),
        });
        drop(kept);
        let pool = Arc::downgrade(self);
        hyper::rt::Executor::execute(
            tasks,
            drive(DriverTask(driver), tasks.ended.clone(), pool, id),
        );
        ConnectionLease {
            pool: self.clone(),
            id,
            sender: Some(sender),
            driver: loan,
            allowance,
            close,
            reused: false,
            complete: false,
        }
    }

    /// Returns a connection for the key that accepts a request now. Closes those that are broken.
    async fn reuse(self: &Arc<Self>, key: &PoolKey) -> Option<ConnectionLease> {
        loop {
            let mut lease = self.lease_existing(key)?;
            if lease.is_ready().await {
                return Some(lease);
            }
            lease.close.cancel();
        }
    }

    /// Takes a connection for the key that appears to be usable.
    fn lease_existing(self: &Arc<Self>, key: &PoolKey) -> Option<ConnectionLease> {
        let mut kept = self.lock();
        // The most recently used connection is the least likely to have been closed by its server.
        for connection in kept.connections.iter_mut().rev() {
            if connection.key != *key || connection.close.is_cancelled() {
                continue;
            }
            let taken = match &mut connection.state {
                ConnectionState::Http1(sender, work) => sender
                    .take()
                    .map(|sender| (RequestSender::Http1(sender), Some(work.lease()))),
                ConnectionState::Http2(sender, streams) => {
                    let free = *streams < MAX_CONCURRENT_STREAMS && sender.is_ready();
                    free.then(|| {
                        *streams += 1;
                        (RequestSender::Http2(sender.clone()), None)
                    })
                }
            };
            if let Some((sender, loan)) = taken {
                connection.idle_since = None;
                return Some(ConnectionLease {
                    pool: self.clone(),
                    id: connection.id,
                    sender: Some(sender),
                    driver: loan,
                    allowance: connection.allowance.clone(),
                    close: connection.close.clone(),
                    reused: true,
                    complete: false,
                });
            }
        }
        None
    }

    /// Returns a leased connection to the pool, or closes it.
    fn release(&self, id: u64, sender: Option<RequestSender>, complete: bool) {
        let mut kept = self.lock();
        let Some(index) = kept
            .connections
            .iter()
            .position(|connection| connection.id == id)
        else {
            return;
        };
        let Some(connection) = kept.connections.get_mut(index) else {
            return;
        };
        let keep = match (&mut connection.state, sender) {
            (ConnectionState::Http1(place, _), Some(RequestSender::Http1(sender)))
                if complete && !sender.is_closed() =>
            {
                *place = Some(sender);
                connection.idle_since = Some(Instant::now());
                true
            }
            (ConnectionState::Http1(..), _) => false,
            (ConnectionState::Http2(sender, streams), _) => {
                *streams -= 1;
                if *streams == 0 {
                    connection.idle_since = Some(Instant::now());
                }
                // After a graceful shutdown (GOAWAY), the other requests are still served.
                *streams > 0 || !sender.is_closed()
            }
        };
        if keep {
            // The last connection in the list is taken first.
            let connection = kept.connections.remove(index);
            kept.connections.push(connection);
        } else {
            kept.connections.remove(index).close.cancel();
        }
        drop(kept);
        self.changed.notify_waiters();
    }

    /// Removes a connection whose idle timeout has passed. Otherwise returns the time of the next
    /// check.
    fn expire(&self, id: u64) -> Option<Instant> {
        let mut kept = self.lock();
        let index = kept
            .connections
            .iter()
            .position(|connection| connection.id == id)?;
        let now = Instant::now();
        let at = kept.connections.get(index)?.idle_since.unwrap_or(now) + self.idle;
        if at <= now {
            kept.connections.remove(index);
            return None;
        }
        Some(at)
    }

    /// Ends a connection that accepts no more requests, unless it still serves some.
    fn retire(&self, id: u64, ended: &CancellationToken) {
        let mut kept = self.lock();
        let serves = |one: &PooledConnection| {
            one.id == id && matches!(one.state, ConnectionState::Http2(_, streams) if streams > 0)
        };
        if kept.connections.iter().any(serves) {
            return;
        }
        kept.connections.retain(|connection| connection.id != id);
        ended.cancel();
    }

    /// Returns a token that closes one connection. It is also cancelled when the pool is closed.
    pub(crate) fn child_token(&self) -> CancellationToken {
        self.close.child_token()
    }

    /// Sets the idle timeout. Must be called before the first connection.
    #[cfg(test)]
    pub(crate) fn keep_for(self: &mut Arc<Self>, idle: Duration) {
        let room = self.permits.clone();
        let close = self.close.clone();
        let (kept, changed, turn) =
            <(Mutex<PoolState>, Arc<Notify>, tokio::sync::Mutex<()>)>::default();
        *self = Arc::new(Self {
            state: kept,
            permits: room,
            changed,
            turn,
            idle,
            close,
        });
    }

    /// Returns the number of connections, including idle ones.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.lock().connections.len()
    }

    /// Returns the number of further connections that can be opened.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.permits.available_permits()
    }
}

impl IdleSocketHolder for ConnectionPool {
    fn idle_since(&self) -> Option<Instant> {
        self.lock()
            .connections
            .iter()
            .filter_map(|one| one.idle_since)
            .min()
    }

    fn close_oldest_idle(&self) {
        let mut kept = self.lock();
        let idle = kept
            .connections
            .iter()
            .enumerate()
            .filter_map(|(at, one)| Some((one.idle_since?, at)));
        if let Some((_, at)) = idle.min() {
            kept.connections.remove(at).close.cancel();
        }
    }
}

/// Drives a connection until it ends, or until its idle timeout has passed.
async fn drive(driver: DriverTask, ended: CancellationToken, pool: Weak<ConnectionPool>, id: u64) {
    // The first check is after one idle timeout: a connection that becomes idle later expires
    // later.
    let mut next_check = Instant::now() + pool.upgrade().map_or(Duration::ZERO, |pool| pool.idle);
    loop {
        tokio::select! {
            () = poll_fn(|context| driver.0.poll_as_owner(context)) => break,
            () = sleep_until(next_check) => match pool.upgrade().and_then(|pool| pool.expire(id)) {
                Some(at) => next_check = at,
                None => break,
            },
        }
    }
    // The connection has ended or was idle for too long, no matter which task drives it.
    drop(driver);
    match pool.upgrade() {
        Some(pool) => pool.retire(id, &ended),
        None => ended.cancel(),
    }
}

/// The use of a connection by one request.
pub(crate) struct ConnectionLease {
    pool: Arc<ConnectionPool>,
    id: u64,
    sender: Option<RequestSender>,
    /// The driver of a connection that serves no other request. It is released before the sender,
    /// because the next lease borrows it.
    driver: Option<DriverLease>,
    allowance: ReadAllowance,
    close: CancellationToken,
    /// True if another request used the connection before.
    pub(crate) reused: bool,
    complete: bool,
}

impl ConnectionLease {
    async fn is_ready(&mut self) -> bool {
        match &mut self.sender {
            Some(sender) => sender.wait_until_ready(self.driver.as_ref()).await,
            None => false,
        }
    }

    /// Returns the parts of the connection.
    pub(crate) fn sender(
        &mut self,
    ) -> Result<(&mut RequestSender, &ReadAllowance, Option<&DriverLease>), SendError> {
        let gone = || SendError::Reset("the connection was returned".to_owned());
        Ok((
            self.sender.as_mut().ok_or_else(gone)?,
            &self.allowance,
            self.driver.as_ref(),
        ))
    }

    /// Drives the connection as far as possible, if this request has its driver.
    pub(crate) fn poll_driver(&self, context: &mut Context<'_>) {
        if let Some(loan) = &self.driver {
            loan.poll_driver(context);
        }
    }

    /// Returns the driver to the connection's task, because this request now waits for something
    /// else.
    pub(crate) fn release_driver(&mut self) {
        self.driver = None;
    }

    /// Returns whether the connection was closed locally.
    pub(crate) fn is_closed_locally(&self) -> bool {
        self.close.is_cancelled()
    }

    /// Returns the connection to the pool after a complete response. If the request is not
    /// complete, the connection cannot be reused.
    pub(crate) fn complete(mut self, upload: &UploadState) {
        self.complete = upload.is_sent();
    }
}

/// Without [`ConnectionLease::complete`], an HTTP/1.1 connection is closed, because the rest of a
/// response is still in transit.
impl Drop for ConnectionLease {
    fn drop(&mut self) {
        self.release_driver();
        let sender = self.sender.take();
        self.pool.release(self.id, sender, self.complete);
    }
}
