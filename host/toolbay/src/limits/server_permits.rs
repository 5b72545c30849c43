//! The permits of the whole server, and the route of a call through the permits that it needs.
//!
//! Shared permits go to the caller that holds the fewest ([`FairSemaphore`]), and each caller
//! leaves a part of them to the others. A call that holds permits never waits for memory, and a call
//! that waits for memory holds no permits. A suspended call, which waits for something outside the
//! server, keeps its memory and reacquires permits later.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use tokio::time::timeout;
use toolbay_catalog::Plugin;
use toolbay_model::{CallRejection, CapacityLimit, RejectionReason, TargetKind};

use crate::limits::call_permit::{
    CallPermit, ComputePermits, MemoryPermits, PermitRoute, PermitStage,
};
use crate::limits::fair_semaphore::{FairSemaphore, PartyId, WaitPriority};
use crate::limits::plugin_permits::{PluginPermits, SharedPart};

/// Size of one memory permit, in bytes.
const MEMORY_PERMIT_BYTES: usize = 1 << 10;

/// The permits that all calls share, in the order in which a call waits for them.
#[derive(Debug)]
pub(crate) struct ServerPermits {
    calls: Arc<FairSemaphore>,
    /// Memory that all calls may reserve together, in KiB.
    memory: Arc<FairSemaphore>,
    /// Suspended calls: they released their permits while they wait for something.
    suspended_calls: Arc<FairSemaphore>,
    /// True if there can be several callers. Then no caller may hold all permits.
    is_shared: bool,
    /// The next number of a client or a plugin.
    numbers: AtomicU64,
    queue_timeout: Duration,
    /// Number of calls in the queue.
    queued_calls: AtomicUsize,
}

/// The limits of the permits, from the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermitLimits {
    /// Maximum number of running calls.
    pub(crate) calls: usize,
    /// Maximum number of suspended calls.
    pub(crate) suspended_calls: usize,
    /// Memory that all calls may reserve together.
    pub(crate) memory: ByteSize,
    /// Maximum time that a call waits for its permits.
    pub(crate) queue_timeout: Duration,
}

/// A client as a party of the shared semaphores ([`FairSemaphore`]), and the client's own permits.
#[derive(Debug)]
pub(crate) struct ClientParty {
    /// The client's ID as a party of the shared semaphores.
    number: PartyId,
    /// Permits for running calls. The parties are the called targets: none may hold all permits.
    calls: Arc<FairSemaphore>,
}

/// Counts a queued call until it is dropped.
struct QueuedCallGuard<'a>(&'a AtomicUsize);

impl<'a> QueuedCallGuard<'a> {
    fn start(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for QueuedCallGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerPermits {
    /// Creates permits within `limits`, for at most `instances` running or suspended calls. Set
    /// `is_shared` if there can be several callers.
    pub(crate) fn new(limits: PermitLimits, instances: usize, is_shared: bool) -> Self {
        let (calls, suspended) = split_instances(instances, limits.calls, limits.suspended_calls);
        let memory = memory_permits(limits.memory);
        Self {
            calls: Arc::new(new_semaphore(calls, is_shared)),
            // A suspended call keeps its memory, so one caller gets at most half of it.
            memory: Arc::new(FairSemaphore::new(
                memory,
                if is_shared { half(memory) } else { memory },
            )),
            suspended_calls: Arc::new(FairSemaphore::new(
                suspended,
                if is_shared {
                    half(suspended)
                } else {
                    suspended
                },
            )),
            is_shared,
            numbers: AtomicU64::new(0),
            queue_timeout: limits.queue_timeout,
            queued_calls: AtomicUsize::new(0),
        }
    }

    /// Creates the party of a new client, which may run this many calls.
    pub(crate) fn new_party(&self, calls: u32) -> ClientParty {
        ClientParty {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            calls: Arc::new(FairSemaphore::new(calls, 1.max(calls - 1))),
        }
    }

    /// Creates the permits of a plugin that has not been called.
    pub(crate) fn new_plugin_permits(&self, plugin: &Plugin) -> PluginPermits {
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
        self.plugin_permits(to_permits(plugin.terms.context.limits.concurrency), targets)
    }

    /// Creates the permits of a plugin with these targets, for this many calls.
    pub(crate) fn plugin_permits(&self, calls: u32, targets: Vec<PartyId>) -> PluginPermits {
        let memory = self.memory.permits() - reserved_share(self.memory.permits());
        let new_part = |calls, memory| SharedPart {
            calls: Arc::new(new_semaphore(calls, self.is_shared)),
            memory: Arc::new(new_semaphore(memory, self.is_shared)),
        };
        // One target leaves one permit and a part of the memory to the others, including those of
        // the same caller.
        let target_part = || new_part(1.max(calls - 1), memory - reserved_share(memory));
        let targets = if targets.len() > 1 {
            targets
        } else {
            Vec::new()
        };
        PluginPermits {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            total: new_part(calls, memory),
            suspended_calls: Arc::new(FairSemaphore::without_party_limit(half(
                self.suspended_calls.permits(),
            ))),
            targets: targets
                .into_iter()
                .map(|target| (target, target_part()))
                .collect(),
        }
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
        u64::from(self.suspended_calls.permits_in_use())
    }

    /// Returns the number of queued calls.
    pub(crate) fn queued_count(&self) -> u64 {
        self.queued_calls.load(Ordering::Relaxed) as u64
    }

    /// Returns the bytes reserved by running and suspended calls, and the maximum.
    pub(crate) fn reserved_memory(&self) -> (u64, u64) {
        let bytes = |permits: u32| u64::from(permits) * MEMORY_PERMIT_BYTES as u64;
        (
            bytes(self.memory.permits_in_use()),
            bytes(self.memory.permits()),
        )
    }

    /// Returns the maximum number of suspended calls of one client.
    pub(crate) fn max_suspended_calls(&self) -> u32 {
        if self.is_shared {
            half(self.suspended_calls.permits())
        } else {
            self.suspended_calls.permits()
        }
    }

    /// Returns the permits that a call of a client needs. `plugin` is the called plugin and its
    /// target, if any.
    pub(crate) fn route<'a>(
        &'a self,
        client: &'a ClientParty,
        plugin: Option<(&'a PluginPermits, PartyId)>,
    ) -> PermitRoute<'a> {
        let stage = |semaphore: &'a Arc<FairSemaphore>, party, bound| {
            Some(PermitStage {
                semaphore,
                party,
                bound,
            })
        };
        let client_id = client.number;
        let mut target_id = 0;
        let mut plugin_suspended = None;
        let [mut calls, mut memory] = [const { [const { None }; 2] }; 2];
        if let Some((plugin, target)) = plugin {
            target_id = target ^ plugin.number;
            plugin_suspended = stage(&plugin.suspended_calls, client_id, CapacityLimit::Plugin);
            let parts = [
                (plugin.targets.get(&target), CapacityLimit::Target),
                (Some(&plugin.total), CapacityLimit::Plugin),
            ];
            calls = parts.map(|(part, bound)| stage(&part?.calls, client_id, bound));
            memory = parts.map(|(part, _)| stage(&part?.memory, client_id, CapacityLimit::Memory));
        }
        let [target_calls, plugin_calls] = calls;
        let [target_memory, plugin_memory] = memory;
        let server = stage(&self.calls, client_id, CapacityLimit::Server);
        PermitRoute {
            // A call that waits at a stage holds the permits of the stages before it. The limits of
            // the client and the target come first, so they bound how many permits are held by
            // waiting calls.
            stages: [
                stage(&client.calls, target_id, CapacityLimit::Client),
                target_calls,
                plugin_calls,
                server,
            ],
            memory: [
                target_memory,
                plugin_memory,
                stage(&self.memory, client_id, CapacityLimit::Memory),
            ],
            suspended: [
                stage(&self.suspended_calls, client_id, CapacityLimit::Server),
                plugin_suspended,
            ],
        }
    }

    /// Waits for the permits of a call and reserves its memory.
    ///
    /// # Errors
    ///
    /// No permit was released within `server.queue_timeout`.
    pub(crate) async fn acquire(
        &self,
        route: PermitRoute<'_>,
        memory: ByteSize,
    ) -> Result<CallPermit, CallRejection> {
        let _waiting = QueuedCallGuard::start(&self.queued_calls);
        let amount = memory_permits(memory);
        let mut awaited = None;
        let acquisition = async {
            let mut compute = route.acquire_compute(WaitPriority::New, &mut awaited).await;
            if let Some(reserved) = route.try_reserve_memory(amount) {
                return (compute, reserved);
            }
            // Calls that hold memory may need these permits before they release it.
            drop(std::mem::take(&mut compute));
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
            timeout(self.queue_timeout, acquisition).await;
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

    /// Returns the rejection of a call for which there is no capacity.
    pub(crate) fn busy_rejection(&self, limit: CapacityLimit, capacity: usize) -> CallRejection {
        let retry_after = self
            .queue_timeout
            .clamp(Duration::from_millis(100), Duration::from_secs(5));
        CallRejection {
            reason: RejectionReason::Busy { limit, capacity },
            retry_after: Some(retry_after),
        }
    }
}

/// Divides the instances into running and suspended calls, and returns both maximums. If there are
/// too few instances, fewer calls can be suspended, and the others keep their permits while they
/// wait.
fn split_instances(instances: usize, calls: usize, suspended: usize) -> (u32, u32) {
    let calls = calls.min(instances);
    (
        to_permits(calls),
        to_permits(suspended.min(instances - calls)),
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
fn new_semaphore(permits: u32, is_shared: bool) -> FairSemaphore {
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
pub(crate) fn target_party(kind: TargetKind, name: &str) -> PartyId {
    let mut hasher = DefaultHasher::new();
    (kind, name).hash(&mut hasher);
    hasher.finish()
}

/// Converts a number of calls to permits.
pub(crate) fn to_permits(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts `memory` to permits.
fn memory_permits(memory: ByteSize) -> u32 {
    u32::try_from(memory.as_u64().div_ceil(MEMORY_PERMIT_BYTES as u64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_pool_is_divided() {
        assert_eq!(split_instances(usize::MAX, 64, 128), (64, 128));
        assert_eq!(split_instances(192, 64, 128), (64, 128));
        assert_eq!(split_instances(100, 64, 128), (64, 36));
        assert_eq!(split_instances(64, 64, 128), (64, 0));
        assert_eq!(split_instances(16, 64, 128), (16, 0));
    }
}
