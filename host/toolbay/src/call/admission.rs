//! Admission of calls. A call needs permits of the client, the tool, the plugin and the server, and
//! a memory reservation. The wait for them is bounded.
//!
//! Shared permits go to the caller that holds the fewest ([`FairSemaphore`]), and a part of them is
//! reserved for other callers. A call that holds permits never waits for memory, and a call that
//! waits for memory holds no permits. A suspended call, which waits for something outside the
//! server, keeps its memory and reacquires permits later.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytesize::ByteSize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use toolbay_catalog::Plugin;
use toolbay_model::{
    CallRejection, CallerIdentity, CapacityLimit, RateLimit, RejectionReason, TargetKind,
};

use crate::call::caller_state::CallerRecord;
use crate::call::plugin_activity::PluginActivity;
use crate::config::ServerConfig;
use crate::limits::call_permit::{
    CallPermit, ComputePermits, MemoryPermits, PermitRoute, PermitStage,
};
use crate::limits::fair_semaphore::{FairSemaphore, PartyId, WaitPriority};
use crate::limits::plugin_permits::{PluginPlaces, SharedPart};
use crate::limits::plugin_table::ByPlugin;
use crate::limits::rate_counter::RateCounter;

/// Size of one memory permit, in bytes.
const MEMORY_PERMIT_BYTES: usize = 1 << 10;

/// Admits calls, queues them or rejects them, within the limits of the configuration.
#[derive(Debug)]
pub(crate) struct CallAdmission {
    calls: Arc<FairSemaphore>,
    /// Memory that all calls may reserve together, in KiB.
    memory: Arc<FairSemaphore>,
    /// Suspended calls: they released their permits while they wait for something.
    waits: Arc<FairSemaphore>,
    /// True if there can be several callers. Then no caller may hold all permits.
    is_shared: bool,
    /// The next number of a client or a plugin.
    numbers: AtomicU64,
    /// The rate limit of each client. Replaced when the configuration changes.
    client_rate: ArcSwapOption<RateLimit>,
    calls_per_caller: u32,
    queue: usize,
    patience: Duration,
    /// Number of calls in the queue.
    waiting: AtomicUsize,
}

/// Counts a queued call until it is dropped.
struct WaitingCall<'a>(&'a AtomicUsize);

impl<'a> WaitingCall<'a> {
    fn start(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Admission state of one client: running calls, queued calls, rates and crashes. A stdio session
/// is one client.
#[derive(Debug)]
pub(crate) struct ClientPermits {
    /// Name of the caller, for the log.
    pub(crate) name: String,
    /// If set, results are returned inline regardless of their size, because the embedder cannot
    /// follow links.
    pub(crate) is_embedder: bool,
    /// The caller, if it is authenticated.
    pub(crate) identity: Option<CallerIdentity>,
    /// State for each plugin that the caller has called. Freed together with the client.
    pub(crate) records: ByPlugin<CallerRecord>,
    rate: ArcSwapOption<RateCounter>,
    /// The client's number among the parties of shared semaphores.
    party: PartyId,
    /// Permits for running calls. The parties are the called targets: none may hold all permits.
    calls: Arc<FairSemaphore>,
    /// Permits for calls that run, wait or are queued.
    places: Arc<Semaphore>,
}

impl CallAdmission {
    /// Creates the admission with the limits of the configuration, for at most `instances` running
    /// or suspended calls. Set `is_shared` if there can be several callers.
    pub(crate) fn new(
        server: &ServerConfig,
        instances: usize,
        client_rate: Option<RateLimit>,
        is_shared: bool,
    ) -> Self {
        let (calls, waiting) = split_instances(instances, server.calls, server.suspended_calls);
        let memory = memory_permits(server.memory());
        Self {
            calls: Arc::new(shared(calls, is_shared)),
            // A waiting call keeps its memory, so one caller gets at most half of it.
            memory: Arc::new(FairSemaphore::new(
                memory,
                if is_shared { half(memory) } else { memory },
            )),
            waits: Arc::new(FairSemaphore::new(
                waiting,
                if is_shared { half(waiting) } else { waiting },
            )),
            is_shared,
            numbers: AtomicU64::new(0),
            client_rate: ArcSwapOption::from_pointee(client_rate),
            calls_per_caller: to_permits(server.calls_per_caller),
            queue: server.queue,
            patience: server.queue_timeout,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Creates the permits of a plugin that has not been called.
    pub(crate) fn new_plugin_places(&self, plugin: &Plugin) -> PluginPlaces {
        let contents = &plugin.component.contents;
        let tools = contents
            .tools
            .iter()
            .map(|tool| target_party(TargetKind::Tool, &tool.tool.name));
        let prompts = contents
            .prompts
            .iter()
            .map(|entry| target_party(TargetKind::Prompt, &entry.prompt.name));
        let resources = contents
            .resources
            .iter()
            .map(|entry| target_party(TargetKind::Resource, &entry.resource.uri));
        let templates = contents
            .templates
            .iter()
            .map(|entry| target_party(TargetKind::Template, &entry.resource.uri));
        let targets = tools
            .chain(prompts)
            .chain(resources)
            .chain(templates)
            .collect();
        self.plugin_places(to_permits(plugin.terms.context.limits.concurrency), targets)
    }

    fn plugin_places(&self, calls: u32, targets: Vec<PartyId>) -> PluginPlaces {
        let memory = self.memory.permits() - reserved_share(self.memory.permits());
        let part = |calls, memory| SharedPart {
            calls: Arc::new(shared(calls, self.is_shared)),
            memory: Arc::new(shared(memory, self.is_shared)),
        };
        // One target leaves one permit and a part of the memory to the others, including those of
        // the same caller.
        let of_target = || part(1.max(calls - 1), memory - reserved_share(memory));
        let targets = if targets.len() > 1 {
            targets
        } else {
            Vec::new()
        };
        PluginPlaces {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            own: part(calls, memory),
            waits: Arc::new(FairSemaphore::without_party_limit(half(
                self.waits.permits(),
            ))),
            targets: targets
                .into_iter()
                .map(|target| (target, of_target()))
                .collect(),
        }
    }

    /// Replaces the rate limit of each client. Existing clients start with a new counter.
    pub(crate) fn set_client_rate(&self, rate: Option<RateLimit>) {
        self.client_rate.store(rate.map(Arc::new));
    }

    /// Returns the number of running calls and its maximum.
    pub(crate) fn running_calls(&self) -> (u64, u64) {
        (
            u64::from(self.calls.permits_in_use()),
            u64::from(self.calls.permits()),
        )
    }

    /// Returns the number of suspended calls: they wait for something outside the server and have
    /// released their permits.
    pub(crate) fn suspended_count(&self) -> u64 {
        u64::from(self.waits.permits_in_use())
    }

    /// Returns the number of queued calls.
    pub(crate) fn waiting_count(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) as u64
    }

    /// Returns the bytes reserved by running and suspended calls, and the maximum.
    pub(crate) fn reserved_memory(&self) -> (u64, u64) {
        let bytes = |permits: u32| u64::from(permits) * MEMORY_PERMIT_BYTES as u64;
        (
            bytes(self.memory.permits_in_use()),
            bytes(self.memory.permits()),
        )
    }

    /// Creates the admission state of a new client. `name` is the caller's name.
    pub(crate) fn new_client(&self, name: &str) -> ClientPermits {
        ClientPermits {
            name: name.to_owned(),
            is_embedder: false,
            identity: CallerIdentity::from_name(name),
            records: ByPlugin::default(),
            rate: ArcSwapOption::from_pointee(
                self.client_rate
                    .load()
                    .as_deref()
                    .copied()
                    .and_then(RateCounter::new),
            ),
            party: self.numbers.fetch_add(1, Ordering::Relaxed),
            calls: Arc::new(FairSemaphore::new(
                self.calls_per_caller,
                1.max(self.calls_per_caller - 1),
            )),
            // Suspended calls still count.
            places: Arc::new(Semaphore::new(
                self.max_unanswered_calls().saturating_add(self.queue),
            )),
        }
    }

    /// Returns the maximum number of calls of one client that run or are suspended.
    fn max_unanswered_calls(&self) -> usize {
        let waits = if self.is_shared {
            half(self.waits.permits())
        } else {
            self.waits.permits()
        };
        self.calls_per_caller.saturating_add(waits) as usize
    }

    /// Creates the admission state of the program that embeds the server.
    pub(crate) fn new_embedder(&self, name: &str) -> ClientPermits {
        ClientPermits {
            is_embedder: true,
            ..self.new_client(name)
        }
    }

    /// Acquires a permit of the client's queue. The call holds it from its arrival until its
    /// response is queued.
    ///
    /// # Errors
    ///
    /// The client exceeded its rate limit, or its queue is full.
    pub(crate) fn enter_queue(
        &self,
        client: &ClientPermits,
    ) -> Result<OwnedSemaphorePermit, CallRejection> {
        let wanted = self.client_rate.load().as_deref().copied();
        if client.rate.load().as_ref().map(|rate| rate.limit()) != wanted {
            // The configuration changed after this client's first call.
            client
                .rate
                .store(wanted.and_then(RateCounter::new).map(Arc::new));
        }
        if let Some(rate) = &*client.rate.load() {
            let rejected = |retry_after| CallRejection {
                reason: RejectionReason::ClientRate(rate.limit()),
                retry_after: Some(retry_after),
            };
            rate.take().map_err(rejected)?;
        }
        Arc::clone(&client.places)
            .try_acquire_owned()
            .map_err(|_| self.busy_rejection(CapacityLimit::Queue, self.queue))
    }

    /// Waits until a call of the target `name` (without the prefix) may run. `plugin_activity`
    /// belongs to the plugin, and `caller_state` to the plugin and the client. The call may use
    /// `memory`.
    ///
    /// # Errors
    ///
    /// The plugin is suspended, it is disabled for the client, a rate limit is exceeded, or no
    /// permit was released within `server.queue_timeout`.
    pub(crate) async fn admit(
        &self,
        client: &ClientPermits,
        activity: &PluginActivity,
        record: &CallerRecord,
        (kind, name): (TargetKind, &str),
        memory: ByteSize,
    ) -> Result<CallPermit, CallRejection> {
        if activity.suspension.is_suspended() {
            // The end of the suspension is unknown.
            return Err(CallRejection {
                reason: RejectionReason::Suspended,
                retry_after: None,
            });
        }
        let disabled = |retry_after| CallRejection {
            reason: RejectionReason::Disabled,
            retry_after: Some(retry_after),
        };
        record
            .breaker
            .check(activity.suspension.resume_count())
            .map_err(disabled)?;
        if let Some(rates) = activity.rates.as_ref().or(record.rates.as_ref()) {
            let rejected = |retry_after| CallRejection {
                reason: RejectionReason::ToolRate(rates.limit()),
                retry_after: Some(retry_after),
            };
            rates.take(name).map_err(rejected)?;
        }
        self.wait_for_permit(
            self.route(client, Some((&activity.places, target_party(kind, name)))),
            memory,
        )
        .await
    }

    /// Waits until the host may do work for a client without a plugin. The work may use `memory`.
    ///
    /// # Errors
    ///
    /// No permit was released within `server.queue_timeout`.
    pub(crate) async fn admit_host(
        &self,
        client: &ClientPermits,
        memory: ByteSize,
    ) -> Result<CallPermit, CallRejection> {
        self.wait_for_permit(self.route(client, None), memory).await
    }

    /// Returns the permits that a call of a client needs. `plugin` is the called plugin and its
    /// target, if any.
    fn route<'a>(
        &'a self,
        client: &'a ClientPermits,
        plugin: Option<(&'a PluginPlaces, PartyId)>,
    ) -> PermitRoute<'a> {
        let stage = |semaphore: &'a Arc<FairSemaphore>, party, bound| {
            Some(PermitStage {
                semaphore,
                party,
                bound,
            })
        };
        let own = client.party;
        let (mut called, mut waits) = (0, None);
        let [mut places, mut memory] = [const { [const { None }; 2] }; 2];
        if let Some((plugin, target)) = plugin {
            called = target ^ plugin.number;
            waits = stage(&plugin.waits, own, CapacityLimit::Plugin);
            let parts = [
                (plugin.targets.get(&target), CapacityLimit::Target),
                (Some(&plugin.own), CapacityLimit::Plugin),
            ];
            places = parts.map(|(part, bound)| stage(&part?.calls, own, bound));
            memory = parts.map(|(part, _)| stage(&part?.memory, own, CapacityLimit::Memory));
        }
        let ([of_target, of_plugin], [its_memory, memory_of_plugin]) = (places, memory);
        let server = stage(&self.calls, own, CapacityLimit::Server);
        PermitRoute {
            // A call that waits for a permit holds those of the stages before it. The limits of its
            // client and its target bound them.
            stages: [
                stage(&client.calls, called, CapacityLimit::Client),
                of_target,
                of_plugin,
                server,
            ],
            memory: [
                its_memory,
                memory_of_plugin,
                stage(&self.memory, own, CapacityLimit::Memory),
            ],
            waits: [stage(&self.waits, own, CapacityLimit::Server), waits],
        }
    }

    /// Waits for the permits of a call and reserves its memory.
    async fn wait_for_permit(
        &self,
        route: PermitRoute<'_>,
        memory: ByteSize,
    ) -> Result<CallPermit, CallRejection> {
        let _waiting = WaitingCall::start(&self.waiting);
        let (amount, mut awaited) = (memory_permits(memory), None);
        let admitted = async {
            let mut places = route.acquire_compute(WaitPriority::New, &mut awaited).await;
            if let Some(reserved) = route.try_reserve_memory(amount) {
                return (places, reserved);
            }
            // Calls that hold memory may need these permits before they release it.
            drop(std::mem::take(&mut places));
            awaited = None;
            let reserved = route.reserve_memory(amount).await;
            (
                route
                    .acquire_compute(WaitPriority::Resumed, &mut awaited)
                    .await,
                reserved,
            )
        };
        let admitted: Result<(ComputePermits, MemoryPermits), _> =
            timeout(self.patience, admitted).await;
        match admitted {
            Ok((places, reserved)) => Ok(CallPermit::new(&route, places, reserved)),
            Err(_elapsed) => Err(match awaited {
                Some(stage) => self.busy_rejection(
                    stage.bound,
                    stage.semaphore.max_for_party(stage.party) as usize,
                ),
                None => self.busy_rejection(
                    CapacityLimit::Memory,
                    (self.memory.permits() as usize).saturating_mul(MEMORY_PERMIT_BYTES),
                ),
            }),
        }
    }

    fn busy_rejection(&self, bound: CapacityLimit, most: usize) -> CallRejection {
        let retry_after = self
            .patience
            .clamp(Duration::from_millis(100), Duration::from_secs(5));
        CallRejection {
            reason: RejectionReason::Busy {
                limit: bound,
                capacity: most,
            },
            retry_after: Some(retry_after),
        }
    }
}

/// Divides the instances into running and suspended calls, and returns both maximums. If there are
/// too few instances, more calls keep their permits while they wait.
fn split_instances(instances: usize, calls: usize, waiting: usize) -> (u32, u32) {
    let calls = calls.min(instances);
    (
        to_permits(calls),
        to_permits(waiting.min(instances - calls)),
    )
}

/// Returns the number of permits reserved for others: a quarter, at least one, but none of a single
/// permit.
fn reserved_share(permits: u32) -> u32 {
    if permits < 2 { 0 } else { (permits / 4).max(1) }
}

/// Returns half of the permits, rounded up.
fn half(permits: u32) -> u32 {
    permits.div_ceil(2)
}

/// Creates a semaphore. If it is shared, each caller leaves a part of it to the others.
fn shared(permits: u32, is_shared: bool) -> FairSemaphore {
    FairSemaphore::new(
        permits,
        if is_shared {
            permits - reserved_share(permits)
        } else {
            permits
        },
    )
}

/// Returns the party of a target within its plugin. Targets with equal hashes share their permits.
fn target_party(kind: TargetKind, name: &str) -> PartyId {
    let mut hasher = DefaultHasher::new();
    (kind, name).hash(&mut hasher);
    hasher.finish()
}

fn to_permits(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts `memory` to permits.
fn memory_permits(memory: ByteSize) -> u32 {
    u32::try_from(memory.as_u64().div_ceil(MEMORY_PERMIT_BYTES as u64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use toolbay_catalog::{ComponentContents, LoadedComponent, Plugin, PluginTerms};
    use toolbay_model::Limits;
    use toolbay_sandbox::{ComputePlace as _, PluginContext};

    use super::*;

    fn admission(calls: usize, calls_per_caller: usize, queue: usize) -> CallAdmission {
        let queue_timeout = Duration::from_millis(1);
        let server = ServerConfig {
            calls,
            calls_per_caller,
            queue,
            queue_timeout,
            suspended_calls: 0,
            ..ServerConfig::default()
        };
        CallAdmission::new(&server, usize::MAX, None, false)
    }

    const TOOL: (TargetKind, &str) = (TargetKind::Tool, "t");

    fn plugin(concurrency: usize) -> Plugin {
        let limits = Limits {
            concurrency,
            ..Limits::DEFAULT
        };
        let terms = PluginTerms {
            context: PluginContext {
                limits,
                ..PluginContext::default()
            },
            ..PluginTerms::default()
        };
        let component = Arc::new(LoadedComponent::without_code(ComponentContents::default()));
        Plugin::new("p".to_owned(), component, Arc::default(), terms)
    }

    /// Returns an arbitrary permit.
    pub(crate) async fn permit() -> CallPermit {
        let admission = admission(1, 1, 1);
        let (client, plugin) = (admission.new_client("a"), plugin(1));
        let (activity, record) = (
            PluginActivity::new(&plugin, admission.new_plugin_places(&plugin)),
            CallerRecord::new(&plugin),
        );
        admission
            .admit(&client, &activity, &record, TOOL, ByteSize::mib(1))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn each_of_the_three_limits_is_enforced() {
        let cases = [
            (1, 9, 9, CapacityLimit::Server),
            (9, 1, 9, CapacityLimit::Client),
            (9, 9, 1, CapacityLimit::Plugin),
        ];
        for (calls, calls_per_caller, concurrency, full) in cases {
            let admission = admission(calls, calls_per_caller, 9);
            let (client, plugin) = (admission.new_client("a"), plugin(concurrency));
            let (activity, record) = (
                PluginActivity::new(&plugin, admission.new_plugin_places(&plugin)),
                CallerRecord::new(&plugin),
            );
            let first = admission
                .admit(&client, &activity, &record, TOOL, ByteSize::mib(1))
                .await
                .unwrap();
            let busy = admission
                .admit(&client, &activity, &record, TOOL, ByteSize::mib(1))
                .await
                .unwrap_err();
            assert_eq!(busy.retry_after, Some(Duration::from_millis(100)));
            assert!(
                matches!(busy.reason, RejectionReason::Busy { limit, capacity: 1 } if limit == full),
                "{busy:?}"
            );
            drop(first);
            admission
                .admit(&client, &activity, &record, TOOL, ByteSize::mib(1))
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn the_memory_of_all_calls_is_bounded() {
        let (memory, queue_timeout) = (Some(ByteSize::mib(10)), Duration::from_millis(1));
        let admission = CallAdmission::new(
            &ServerConfig {
                queue_timeout,
                memory,
                ..ServerConfig::default()
            },
            usize::MAX,
            None,
            false,
        );
        let (client, one) = (admission.new_client("a"), plugin(9));
        let (activity, record) = (
            PluginActivity::new(&one, admission.new_plugin_places(&one)),
            CallerRecord::new(&one),
        );
        let admit = |memory| admission.admit(&client, &activity, &record, TOOL, memory);
        let first = admit(ByteSize::mib(6)).await.unwrap();
        let busy = admit(ByteSize::mib(5)).await.unwrap_err();
        assert_eq!(
            busy.reason,
            RejectionReason::Busy {
                limit: CapacityLimit::Memory,
                capacity: 10 << 20
            }
        );
        let busy = admit(ByteSize::mib(4)).await.unwrap_err();
        assert_eq!(
            busy.reason,
            RejectionReason::Busy {
                limit: CapacityLimit::Memory,
                capacity: 10 << 20
            },
            "a quarter is for other plugins"
        );
        let (other, elsewhere) = (plugin(9), admission.new_client("b"));
        let (others, theirs) = (
            PluginActivity::new(&other, admission.new_plugin_places(&other)),
            CallerRecord::new(&other),
        );
        admission
            .admit(&elsewhere, &others, &theirs, TOOL, ByteSize::mib(4))
            .await
            .unwrap();
        drop(first);
        admit(ByteSize::mib(10)).await.unwrap();
    }

    #[test]
    fn the_queue_is_bounded() {
        let admission = admission(1, 1, 1);
        let client = admission.new_client("a");
        let places = [
            admission.enter_queue(&client).unwrap(),
            admission.enter_queue(&client).unwrap(),
        ];
        assert_eq!(
            admission.enter_queue(&client).unwrap_err().reason,
            RejectionReason::Busy {
                limit: CapacityLimit::Queue,
                capacity: 1
            }
        );
        assert!(
            admission.enter_queue(&admission.new_client("a")).is_ok(),
            "another client has its own"
        );
        drop(places);
        assert!(admission.enter_queue(&client).is_ok());
    }

    fn many_tools(admission: &CallAdmission, concurrency: usize) -> PluginPlaces {
        admission.plugin_places(
            to_permits(concurrency),
            ["t", "u"]
                .map(|name| target_party(TargetKind::Tool, name))
                .to_vec(),
        )
    }

    fn shared(server: ServerConfig) -> CallAdmission {
        CallAdmission::new(
            &ServerConfig {
                queue_timeout: Duration::from_mins(1),
                ..server
            },
            usize::MAX,
            None,
            true,
        )
    }

    async fn place(
        admission: &CallAdmission,
        client: &ClientPermits,
        places: &PluginPlaces,
        tool: &str,
    ) -> CallPermit {
        let route = admission.route(client, Some((places, target_party(TargetKind::Tool, tool))));
        admission
            .wait_for_permit(route, ByteSize::mib(1))
            .await
            .unwrap()
    }

    async fn is_busy(
        admission: &CallAdmission,
        client: &ClientPermits,
        places: &PluginPlaces,
        tool: &str,
    ) -> bool {
        let next = std::pin::pin!(place(admission, client, places, tool));
        futures_util::poll!(next).is_pending()
    }

    #[tokio::test]
    async fn no_caller_and_no_tool_has_all_places_of_a_plugin() {
        let admission = shared(ServerConfig::default());
        let places = many_tools(&admission, 8);
        let [greedy, other, third] = ["a", "b", "c"].map(|name| admission.new_client(name));
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(place(&admission, &greedy, &places, "t").await);
        }
        for tool in ["t", "u"] {
            assert!(
                is_busy(&admission, &greedy, &places, tool).await,
                "a quarter is for other callers"
            );
        }
        held.push(place(&admission, &other, &places, "t").await);
        assert!(
            is_busy(&admission, &third, &places, "t").await,
            "one place is for other tools"
        );
        held.push(place(&admission, &third, &places, "u").await);
        assert!(is_busy(&admission, &other, &places, "u").await);
    }

    #[tokio::test]
    async fn who_has_many_calls_of_a_tool_in_the_queue_does_not_keep_others_waiting() {
        let admission = shared(ServerConfig {
            calls: 64,
            calls_per_caller: 32,
            ..ServerConfig::default()
        });
        let places = many_tools(&admission, 4);
        let [greedy, other] = ["a", "b"].map(|name| admission.new_client(name));
        let its = [
            place(&admission, &greedy, &places, "t").await,
            place(&admission, &greedy, &places, "t").await,
        ];
        let mut queue: Vec<_> = (0..30)
            .map(|_| Box::pin(place(&admission, &greedy, &places, "t")))
            .collect();
        for next in &mut queue {
            assert!(futures_util::poll!(next).is_pending());
        }
        let others = place(&admission, &other, &places, "t").await;
        let mut next = std::pin::pin!(place(&admission, &other, &places, "t"));
        assert!(
            futures_util::poll!(&mut next).is_pending(),
            "one place is for other tools"
        );
        drop(place(&admission, &greedy, &places, "u").await);
        drop(others);
        assert!(
            futures_util::poll!(&mut next).is_ready(),
            "it has the fewest"
        );
        drop(its);
        let begun: Vec<_> = queue
            .iter_mut()
            .filter_map(futures_util::FutureExt::now_or_never)
            .collect();
        assert_eq!(begun.len(), 2);
    }

    #[tokio::test]
    async fn no_target_has_all_places_of_a_client() {
        let admission = CallAdmission::new(&ServerConfig::default(), usize::MAX, None, false);
        let [one, two] = [many_tools(&admission, 16), many_tools(&admission, 16)];
        let client = admission.new_client("a");
        let mut calls: Vec<_> = (0..40)
            .map(|_| Box::pin(place(&admission, &client, &one, "t")))
            .collect();
        let mut held = Vec::new();
        for call in &mut calls {
            if let std::task::Poll::Ready(permit) = futures_util::poll!(call) {
                held.push(permit);
            }
        }
        assert_eq!(held.len(), 15);
        let of_other_tool = place(&admission, &client, &one, "u").await;
        drop(of_other_tool);
        drop(place(&admission, &client, &two, "t").await);
    }

    #[tokio::test]
    async fn a_call_that_waits_gives_its_places_back_and_keeps_its_memory() {
        let config = ServerConfig {
            calls: 2,
            calls_per_caller: 2,
            suspended_calls: 4,
            ..ServerConfig::default()
        };
        let admission = shared(config);
        let places = many_tools(&admission, 2);
        let client = admission.new_client("a");
        let first = place(&admission, &client, &places, "t").await;
        assert!(is_busy(&admission, &client, &places, "t").await);
        assert!(first.release());
        assert_eq!(
            (
                admission.running_calls().0,
                admission.suspended_count(),
                admission.reserved_memory().0
            ),
            (0, 1, 1 << 20)
        );
        let second = place(&admission, &client, &places, "t").await;
        assert!(
            futures_util::poll!(first.acquire()).is_pending(),
            "the second one has it"
        );
        let mut third = std::pin::pin!(place(&admission, &client, &places, "t"));
        let mut again = first.acquire();
        assert!(
            futures_util::poll!(&mut third).is_pending()
                && futures_util::poll!(&mut again).is_pending()
        );
        drop(second);
        assert!(
            futures_util::poll!(&mut third).is_pending(),
            "who was there before goes first"
        );
        assert!(futures_util::poll!(&mut again).is_ready());
        drop(again);
        assert_eq!(
            (admission.running_calls().0, admission.suspended_count()),
            (1, 0)
        );
        drop(first);
        assert!(futures_util::poll!(&mut third).is_ready());
        assert_eq!(
            (admission.running_calls().0, admission.reserved_memory().0),
            (0, 0)
        );
    }

    #[tokio::test]
    async fn calls_that_wait_are_bounded() {
        let config = ServerConfig {
            suspended_calls: 4,
            ..ServerConfig::default()
        };
        let admission = shared(config);
        let [places, rest] = [many_tools(&admission, 16), many_tools(&admission, 16)];
        let client = admission.new_client("a");
        let mut held = Vec::new();
        for at in 0..3 {
            held.push(place(&admission, &client, &places, "t").await);
            assert_eq!(
                held.last().unwrap().release(),
                at < 2,
                "half of them are for other callers"
            );
        }
        assert_eq!(admission.running_calls().0, 1, "it keeps its place");
        for (places, client, may) in [(&rest, "b", true), (&rest, "c", true), (&rest, "d", false)] {
            held.push(place(&admission, &admission.new_client(client), places, "t").await);
            assert_eq!(held.last().unwrap().release(), may);
        }
        assert_eq!(admission.suspended_count(), 4);
        held.clear();
        assert_eq!(
            (admission.suspended_count(), admission.running_calls().0),
            (0, 0)
        );
    }

    #[tokio::test]
    async fn who_waits_for_memory_holds_no_place() {
        let config = ServerConfig {
            memory: Some(ByteSize::mib(4)),
            calls: 4,
            ..ServerConfig::default()
        };
        let admission = shared(config);
        let places = many_tools(&admission, 2);
        let [one, two] = ["a", "b"].map(|name| admission.new_client(name));
        let first = place(&admission, &one, &places, "t").await;
        assert!(first.release());
        let second = place(&admission, &two, &places, "t").await;
        assert!(second.release());
        let mut third = std::pin::pin!(place(&admission, &one, &places, "t"));
        assert!(
            futures_util::poll!(&mut third).is_pending(),
            "there is no memory"
        );
        assert!(
            futures_util::poll!(first.acquire()).is_ready(),
            "those that have memory go on"
        );
        drop(first);
        assert!(futures_util::poll!(&mut third).is_ready());
    }

    #[test]
    fn a_small_pool_is_divided() {
        assert_eq!(split_instances(usize::MAX, 64, 128), (64, 128));
        assert_eq!(split_instances(192, 64, 128), (64, 128));
        assert_eq!(split_instances(100, 64, 128), (64, 36));
        assert_eq!(split_instances(64, 64, 128), (64, 0));
        assert_eq!(split_instances(16, 64, 128), (16, 0));
    }
}
