//! Admission of calls: permits of the server, the plugin and the client, with a bounded wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytesize::ByteSize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use toolbay_model::{Bound, Identity, RateLimit, Reason, Rejection};

use crate::activity::Activity;
use crate::by_plugin::ByPlugin;
use crate::config::ServerConfig;
use crate::rate_counter::RateCounter;
use crate::record::Record;

/// Bytes of one permit for memory.
const KIB: usize = 1 << 10;

/// Admits calls, lets them wait, or rejects them, within the limits of the configuration.
#[derive(Debug)]
pub(crate) struct Admission {
    calls: Arc<Semaphore>,
    /// The number of permits in `calls`.
    server_calls: usize,
    /// What running calls may hold together, in KiB.
    memory: Arc<Semaphore>,
    /// The number of permits in `memory`.
    server_memory: u32,
    /// Replaced when the configuration changes.
    client_rate: ArcSwapOption<RateLimit>,
    client_calls: usize,
    queue: usize,
    patience: Duration,
    /// Calls that wait for their turn.
    waiting: AtomicUsize,
}

/// A call that waits for its turn until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One client's share: running calls, waiting calls, rates and crashes. A stdio session is one client.
#[derive(Debug)]
pub(crate) struct ClientPermits {
    /// Name of the caller, for the log.
    pub(crate) name: String,
    /// Whether it gets results whole, however large: a link would lead nowhere.
    pub(crate) is_embedder: bool,
    /// The caller, if it is authenticated.
    pub(crate) identity: Option<Identity>,
    /// What the caller did with each plugin that it has called. Freed with the share.
    pub(crate) records: ByPlugin<Record>,
    rate: ArcSwapOption<RateCounter>,
    /// Running at once.
    calls: Arc<Semaphore>,
    /// Running or waiting.
    places: Arc<Semaphore>,
}

/// The permission to run one call. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Permit(#[expect(dead_code, reason = "held for its Drop")] [Option<OwnedSemaphorePermit>; 4]);

impl Admission {
    /// Admission with the limits of the configuration, and room for at most `calls` calls at once.
    pub(crate) fn new(server: &ServerConfig, calls: usize, client_rate: Option<RateLimit>) -> Self {
        let calls = calls.min(server.calls);
        let server_memory = kib(server.memory());
        Self {
            calls: Arc::new(Semaphore::new(calls)),
            server_calls: calls,
            memory: Arc::new(Semaphore::new(server_memory as usize)),
            server_memory,
            client_rate: ArcSwapOption::from_pointee(client_rate),
            client_calls: server.client_calls,
            queue: server.queue,
            patience: server.queue_wait,
            waiting: AtomicUsize::new(0),
        }
    }

    /// From now on, this is the rate limit of each client. Those that call already begin anew.
    pub(crate) fn set_client_rate(&self, rate: Option<RateLimit>) {
        self.client_rate.store(rate.map(Arc::new));
    }

    /// Calls that run, and how many may.
    pub(crate) fn running(&self) -> (u64, u64) {
        (self.server_calls.saturating_sub(self.calls.available_permits()) as u64, self.server_calls as u64)
    }

    /// Calls that wait for their turn.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) as u64
    }

    /// Bytes that the running calls may hold, and how many all calls may hold together.
    pub(crate) fn reserved(&self) -> (u64, u64) {
        let all = self.server_memory as usize;
        let bytes = |permits: usize| permits.saturating_mul(KIB) as u64;
        (bytes(all.saturating_sub(self.memory.available_permits())), bytes(all))
    }

    /// The share of a new client; `name` is the caller's.
    pub(crate) fn client(&self, name: &str) -> ClientPermits {
        ClientPermits {
            name: name.to_owned(),
            is_embedder: false,
            identity: Identity::of(name),
            records: ByPlugin::default(),
            rate: ArcSwapOption::from_pointee(self.client_rate.load().as_deref().copied().and_then(RateCounter::new)),
            calls: Arc::new(Semaphore::new(self.client_calls)),
            places: Arc::new(Semaphore::new(self.client_calls.saturating_add(self.queue))),
        }
    }

    /// The share of the program that the server is a part of.
    pub(crate) fn embedder(&self, name: &str) -> ClientPermits {
        ClientPermits { is_embedder: true, ..self.client(name) }
    }

    /// Takes a place in the client's queue. Held from the arrival of a call until its response is queued.
    ///
    /// # Errors
    ///
    /// The client exceeded its rate limit, or its queue is full.
    pub(crate) fn queue(&self, client: &ClientPermits) -> Result<OwnedSemaphorePermit, Rejection> {
        let wanted = self.client_rate.load().as_deref().copied();
        if client.rate.load().as_ref().map(|rate| rate.limit()) != wanted {
            // The configuration has changed since this client's first call.
            client.rate.store(wanted.and_then(RateCounter::new).map(Arc::new));
        }
        if let Some(rate) = &*client.rate.load() {
            let rejected =
                |retry_after| Rejection { reason: Reason::ClientRate(rate.limit()), retry_after: Some(retry_after) };
            rate.take().map_err(rejected)?;
        }
        Arc::clone(&client.places).try_acquire_owned().map_err(|_| self.busy(Bound::Queue, self.queue))
    }

    /// Waits until a call of the tool `name` (without the prefix) may run. `activity` belongs to its plugin, of which
    /// `concurrency` calls may run at once, and `record` to the plugin and the client; the call may hold `memory`.
    ///
    /// # Errors
    ///
    /// The plugin rests or is disabled for the client, a rate limit is exceeded, or no slot became free within `server.queue_wait`.
    pub(crate) async fn admit(
        &self,
        client: &ClientPermits,
        activity: &Activity,
        record: &Record,
        name: &str,
        concurrency: usize,
        memory: ByteSize,
    ) -> Result<Permit, Rejection> {
        if activity.rest.rests() {
            // Nobody knows for how long.
            return Err(Rejection { reason: Reason::Resting, retry_after: None });
        }
        let disabled = |retry_after| Rejection { reason: Reason::Disabled, retry_after: Some(retry_after) };
        record.breaker.check(activity.rest.woken()).map_err(disabled)?;
        if let Some(rates) = activity.rates.as_ref().or(record.rates.as_ref()) {
            let rejected =
                |retry_after| Rejection { reason: Reason::ToolRate(rates.limit()), retry_after: Some(retry_after) };
            rates.take(name).map_err(rejected)?;
        }
        self.wait(client, Some((&activity.slots, concurrency)), memory).await
    }

    /// Waits until the host may do something for a client that no plugin has to do with. It may hold `memory`.
    ///
    /// # Errors
    ///
    /// No slot became free within `server.queue_wait`.
    pub(crate) async fn admit_host(&self, client: &ClientPermits, memory: ByteSize) -> Result<Permit, Rejection> {
        self.wait(client, None, memory).await
    }

    /// Waits for the slots of a call: `plugin` has those of the plugin, and how many there are.
    async fn wait(
        &self,
        client: &ClientPermits,
        plugin: Option<(&Arc<Semaphore>, usize)>,
        memory: ByteSize,
    ) -> Result<Permit, Rejection> {
        let _waiting = Waiting::begin(&self.waiting);
        // In this order, so that a call that waits for a busy plugin does not hold a slot of the server.
        let mut full = (Bound::Client, self.client_calls);
        let permits = async {
            let client = Arc::clone(&client.calls).acquire_owned().await.ok()?;
            let plugin = match plugin {
                Some((slots, most)) => {
                    full = (Bound::Plugin, most);
                    Some(Arc::clone(slots).acquire_owned().await.ok()?)
                }
                None => None,
            };
            full = (Bound::Server, self.server_calls);
            let server = Arc::clone(&self.calls).acquire_owned().await.ok()?;
            full = (Bound::Memory, (self.server_memory as usize).saturating_mul(KIB));
            let reserved = kib(memory).min(self.server_memory);
            let memory = Arc::clone(&self.memory).acquire_many_owned(reserved).await.ok()?;
            Some(Permit([Some(client), plugin, Some(server), Some(memory)]))
        };
        let permit = timeout(self.patience, permits).await.ok().flatten();
        permit.ok_or_else(|| self.busy(full.0, full.1))
    }

    fn busy(&self, bound: Bound, most: usize) -> Rejection {
        let retry_after = self.patience.clamp(Duration::from_millis(100), Duration::from_secs(5));
        Rejection { reason: Reason::Busy { bound, most }, retry_after: Some(retry_after) }
    }
}

/// `memory` in permits.
fn kib(memory: ByteSize) -> u32 {
    u32::try_from(memory.as_u64().div_ceil(KIB as u64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_catalog::{Component, Contents, Plugin, Terms};
    use toolbay_model::Limits;
    use toolbay_sandbox::Environment;

    use super::*;

    fn admission(calls: usize, client_calls: usize, queue: usize) -> Admission {
        let queue_wait = Duration::from_millis(1);
        let server = ServerConfig { calls, client_calls, queue, queue_wait, ..ServerConfig::default() };
        Admission::new(&server, usize::MAX, None)
    }

    fn plugin(concurrency: usize) -> Plugin {
        let limits = Limits { concurrency, ..Limits::DEFAULT };
        let terms = Terms { environment: Environment { limits, ..Environment::default() }, ..Terms::default() };
        let component = Arc::new(Component::without_code(Contents::default()));
        Plugin::new("p".to_owned(), component, Arc::default(), terms)
    }

    /// Any permit.
    pub(crate) async fn permit() -> Permit {
        let admission = admission(1, 1, 1);
        let (client, plugin) = (admission.client("a"), plugin(1));
        let (activity, record) = (Activity::of(&plugin), Record::of(&plugin));
        admission.admit(&client, &activity, &record, "t", 1, ByteSize::mib(1)).await.unwrap()
    }

    #[tokio::test]
    async fn each_of_the_three_limits_is_enforced() {
        let cases = [(1, 9, 9, Bound::Server), (9, 1, 9, Bound::Client), (9, 9, 1, Bound::Plugin)];
        for (calls, client_calls, concurrency, full) in cases {
            let admission = admission(calls, client_calls, 9);
            let (client, plugin) = (admission.client("a"), plugin(concurrency));
            let (activity, record) = (Activity::of(&plugin), Record::of(&plugin));
            let first = admission.admit(&client, &activity, &record, "t", concurrency, ByteSize::mib(1)).await.unwrap();
            let busy =
                admission.admit(&client, &activity, &record, "t", concurrency, ByteSize::mib(1)).await.unwrap_err();
            assert_eq!(busy.retry_after, Some(Duration::from_millis(100)));
            assert!(matches!(busy.reason, Reason::Busy { bound, most: 1 } if bound == full), "{busy:?}");
            drop(first);
            admission.admit(&client, &activity, &record, "t", concurrency, ByteSize::mib(1)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_memory_of_all_calls_is_bounded() {
        let (memory, queue_wait) = (Some(ByteSize::mib(10)), Duration::from_millis(1));
        let admission =
            Admission::new(&ServerConfig { queue_wait, memory, ..ServerConfig::default() }, usize::MAX, None);
        let (client, plugin) = (admission.client("a"), plugin(9));
        let (activity, record) = (Activity::of(&plugin), Record::of(&plugin));
        let admit = |memory| admission.admit(&client, &activity, &record, "t", 9, memory);
        let first = admit(ByteSize::mib(6)).await.unwrap();
        let busy = admit(ByteSize::mib(5)).await.unwrap_err();
        assert_eq!(busy.reason, Reason::Busy { bound: Bound::Memory, most: 10 << 20 });
        admit(ByteSize::mib(4)).await.unwrap();
        drop(first);
        admit(ByteSize::mib(10)).await.unwrap();
    }

    #[test]
    fn the_queue_is_bounded() {
        let admission = admission(1, 1, 1);
        let client = admission.client("a");
        let places = [admission.queue(&client).unwrap(), admission.queue(&client).unwrap()];
        assert_eq!(admission.queue(&client).unwrap_err().reason, Reason::Busy { bound: Bound::Queue, most: 1 });
        assert!(admission.queue(&admission.client("a")).is_ok(), "another client has its own");
        drop(places);
        assert!(admission.queue(&client).is_ok());
    }
}
