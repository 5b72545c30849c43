//! The connections of one plugin.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Context;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolbay_policy::UrlOrigin;

use crate::connection::{ConnectionSlot, ConnectionTasks, HttpConnection, RequestSender, STREAMS};
use crate::error::SendError;
use crate::exchange::UploadState;
use crate::partition::PoolPartition;
use crate::sockets::IdleSocketHolder;
use crate::upload::UploadBody;
use crate::wire::ReadAllowance;
use crate::work::{ConnectionDriver, DriverLease, DriverTask};

/// How long a connection is kept without a request. Many servers close theirs after a minute; a request that meets
/// the end of a connection fails.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// What connections are used again for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolKey {
    pub(crate) origin: UrlOrigin,
    pub(crate) partition: PoolPartition,
}

/// A bounded number of connections: those in use, and idle ones, which make room when it is needed.
pub(crate) struct ConnectionPool {
    kept: Mutex<PoolState>,
    room: Arc<Semaphore>,
    /// Something became idle, or ended.
    changed: Arc<Notify>,
    /// Held by whoever is next to get room: first come, first served.
    turn: tokio::sync::Mutex<()>,
    /// How long a connection is kept without a request.
    idle: Duration,
    close: CancellationToken,
}

#[derive(Default)]
struct PoolState {
    connections: Vec<PooledConnection>,
    next: u64,
}

struct PooledConnection {
    id: u64,
    key: PoolKey,
    state: ConnectionState,
    /// Since when no request has used it. `None` while one does.
    idle_since: Option<Instant>,
    allowance: ReadAllowance,
    close: CancellationToken,
}

enum ConnectionState {
    /// One request at a time takes the sender away, and does the work.
    Http1(Option<http1::SendRequest<UploadBody>>, Arc<ConnectionDriver>),
    /// The requests that use it, at most [`STREAMS`].
    Http2(http2::SendRequest<UploadBody>, usize),
}

/// What a request got.
pub(crate) enum PoolCheckout {
    /// A connection that was used before.
    Lease(ConnectionLease),
    /// Room for a new connection.
    Room(ConnectionSlot),
}

impl ConnectionPool {
    /// A pool of at most this many connections, at least one, each of which is kept for [`IDLE`] without a request. All
    /// of them end with `close`.
    pub(crate) fn new(connections: usize, close: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            room: Arc::new(Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS))),
            changed: Arc::default(),
            turn: tokio::sync::Mutex::default(),
            idle: IDLE,
            close,
        })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for the key, or room for one. Waits until there is.
    pub(crate) async fn get(self: &Arc<Self>, key: &PoolKey) -> PoolCheckout {
        if let Some(lease) = self.reuse(key).await {
            return PoolCheckout::Lease(lease);
        }
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on nothing that changes is missed.
            changed.as_mut().enable();
            if let Some(lease) = self.reuse(key).await {
                return PoolCheckout::Lease(lease);
            }
            if let Ok(permit) = self.room.clone().try_acquire_owned() {
                return PoolCheckout::Room(ConnectionSlot::new(permit, self.changed.clone()));
            }
            self.close_oldest_idle();
            changed.await;
        }
    }

    /// Keeps a new connection, which is leased at first.
    pub(crate) fn add(
        self: &Arc<Self>,
        key: PoolKey,
        established: HttpConnection,
        tasks: &ConnectionTasks,
    ) -> ConnectionLease {
        let HttpConnection { sender, allowance, work } = established;
        let close = tasks.close.clone();
        let mut kept = self.lock();
        let id = kept.next;
        kept.next += 1;
        let (state, loan) = match &sender {
            RequestSender::Http1(_) => (ConnectionState::Http1(None, Arc::clone(&work)), Some(work.lend())),
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
        hyper::rt::Executor::execute(tasks, drive(DriverTask(work), tasks.ended.clone(), pool, id));
        ConnectionLease {
            pool: self.clone(),
            id,
            sender: Some(sender),
            loan,
            allowance,
            close,
            reused: false,
            complete: false,
        }
    }

    /// A connection for the key that takes a request now. Those that turn out to be broken are closed.
    async fn reuse(self: &Arc<Self>, key: &PoolKey) -> Option<ConnectionLease> {
        loop {
            let mut lease = self.take(key)?;
            if lease.is_ready().await {
                return Some(lease);
            }
            lease.close.cancel();
        }
    }

    /// A connection for the key that looks usable.
    fn take(self: &Arc<Self>, key: &PoolKey) -> Option<ConnectionLease> {
        let mut kept = self.lock();
        // The one that was used last is the least likely to be closed by its server.
        for connection in kept.connections.iter_mut().rev() {
            if connection.key != *key || connection.close.is_cancelled() {
                continue;
            }
            let taken = match &mut connection.state {
                ConnectionState::Http1(sender, work) => {
                    sender.take().map(|sender| (RequestSender::Http1(sender), Some(work.lend())))
                }
                ConnectionState::Http2(sender, streams) => {
                    let free = *streams < STREAMS && sender.is_ready();
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
                    loan,
                    allowance: connection.allowance.clone(),
                    close: connection.close.clone(),
                    reused: true,
                    complete: false,
                });
            }
        }
        None
    }

    /// Takes back what was leased, or closes it.
    fn give_back(&self, id: u64, sender: Option<RequestSender>, complete: bool) {
        let mut kept = self.lock();
        let Some(index) = kept.connections.iter().position(|connection| connection.id == id) else { return };
        let Some(connection) = kept.connections.get_mut(index) else { return };
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
                // After a graceful end (GOAWAY), the others are still served.
                *streams > 0 || !sender.is_closed()
            }
        };
        if keep {
            // The last one in the list is taken first.
            let connection = kept.connections.remove(index);
            kept.connections.push(connection);
        } else {
            kept.connections.remove(index).close.cancel();
        }
        drop(kept);
        self.changed.notify_waiters();
    }

    /// Forgets a connection that was idle for too long. Otherwise says when to ask again.
    fn expire(&self, id: u64) -> Option<Instant> {
        let mut kept = self.lock();
        let index = kept.connections.iter().position(|connection| connection.id == id)?;
        let now = Instant::now();
        let at = kept.connections.get(index)?.idle_since.unwrap_or(now) + self.idle;
        if at <= now {
            kept.connections.remove(index);
            return None;
        }
        Some(at)
    }

    /// Ends a connection that takes no more requests, unless it still serves some.
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

    /// The token that closes one connection, or with all others.
    pub(crate) fn child_token(&self) -> CancellationToken {
        self.close.child_token()
    }

    /// Keeps connections for another time without a request. Before the first is made.
    #[cfg(test)]
    pub(crate) fn keep_for(self: &mut Arc<Self>, idle: Duration) {
        let (room, close) = (self.room.clone(), self.close.clone());
        let (kept, changed, turn) = <(Mutex<PoolState>, Arc<Notify>, tokio::sync::Mutex<()>)>::default();
        *self = Arc::new(Self { kept, room, changed, turn, idle, close });
    }

    /// How many connections there are, idle ones included.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.lock().connections.len()
    }

    /// How many more connections there may be.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.room.available_permits()
    }
}

impl IdleSocketHolder for ConnectionPool {
    fn idle_since(&self) -> Option<Instant> {
        self.lock().connections.iter().filter_map(|one| one.idle_since).min()
    }

    fn close_oldest_idle(&self) {
        let mut kept = self.lock();
        let idle = kept.connections.iter().enumerate().filter_map(|(at, one)| Some((one.idle_since?, at)));
        if let Some((_, at)) = idle.min() {
            kept.connections.remove(at).close.cancel();
        }
    }
}

/// Does the work of a connection until it ends, or was idle for too long.
async fn drive(work: DriverTask, ended: CancellationToken, pool: Weak<ConnectionPool>, id: u64) {
    // No connection is idle for longer than this before it is looked at: one that becomes idle later expires later.
    let mut look = Instant::now() + pool.upgrade().map_or(Duration::ZERO, |pool| pool.idle);
    loop {
        tokio::select! {
            () = poll_fn(|context| work.0.poll_own(context)) => break,
            () = sleep_until(look) => match pool.upgrade().and_then(|pool| pool.expire(id)) {
                Some(at) => look = at,
                None => break,
            },
        }
    }
    // Whoever does it: the connection was idle for too long, or has ended.
    drop(work);
    match pool.upgrade() {
        Some(pool) => pool.retire(id, &ended),
        None => ended.cancel(),
    }
}

/// The use of a connection for one request.
pub(crate) struct ConnectionLease {
    pool: Arc<ConnectionPool>,
    id: u64,
    sender: Option<RequestSender>,
    /// The work of a connection that serves nothing else. It is given back before the sender is: the next lease borrows it.
    loan: Option<DriverLease>,
    allowance: ReadAllowance,
    close: CancellationToken,
    /// Whether another request used the connection before.
    pub(crate) reused: bool,
    complete: bool,
}

impl ConnectionLease {
    async fn is_ready(&mut self) -> bool {
        match &mut self.sender {
            Some(sender) => sender.ready(self.loan.as_ref()).await,
            None => false,
        }
    }

    /// The connection.
    pub(crate) fn sender(&mut self) -> Result<(&mut RequestSender, &ReadAllowance, Option<&DriverLease>), SendError> {
        let gone = || SendError::Reset("the connection was given back".to_owned());
        Ok((self.sender.as_mut().ok_or_else(gone)?, &self.allowance, self.loan.as_ref()))
    }

    /// Does what the connection can do now, if it is for this request to do.
    pub(crate) fn advance(&self, context: &mut Context<'_>) {
        if let Some(loan) = &self.loan {
            loan.advance(context);
        }
    }

    /// Leaves the work to the task of the connection: somebody else has to be waited for now.
    pub(crate) fn give_work_back(&mut self) {
        self.loan = None;
    }

    /// Whether the connection was closed from here.
    pub(crate) fn is_closed(&self) -> bool {
        self.close.is_cancelled()
    }

    /// Gives the connection back: its response is complete. If its request is not, nothing else can be sent on it.
    pub(crate) fn complete(mut self, exchange: &UploadState) {
        self.complete = exchange.is_sent();
    }
}

/// Without [`ConnectionLease::complete`], a connection of HTTP/1.1 is closed: the rest of a response is on its way.
impl Drop for ConnectionLease {
    fn drop(&mut self) {
        self.give_work_back();
        let sender = self.sender.take();
        self.pool.give_back(self.id, sender, self.complete);
    }
}
