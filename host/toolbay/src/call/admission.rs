//! Admission of calls. A call needs permits of the client, the tool, the plugin and the server, and
//! a memory reservation. The wait for them is bounded ([`ServerPermits`]).

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytesize::ByteSize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolbay_catalog::Plugin;
use toolbay_model::text::format_duration;
use toolbay_model::{
    CallRejection, CallerIdentity, CapacityLimit, RateLimit, RejectionReason, TargetKind,
};

use crate::call::caller_state::CallerState;
use crate::call::client_permits::ClientAdmission;
use crate::call::plugin_activity::PluginActivity;
use crate::config::ServerConfig;
use crate::limits::breaker::BreakerRules;
use crate::limits::call_permit::CallPermit;
use crate::limits::plugin_table::PluginTable;
use crate::limits::rate_counter::RateCounter;
use crate::limits::server_permits::{PermitLimits, ServerPermits, target_party, to_permits};

/// Admits calls, queues them or rejects them, within the limits of the configuration.
#[derive(Debug)]
pub(crate) struct CallAdmission {
    permits: ServerPermits,
    /// State of each plugin that has been called.
    activities: PluginTable<PluginActivity>,
    /// The rate limit of each client. Replaced when the configuration changes.
    client_rate: ArcSwapOption<RateLimit>,
    calls_per_caller: u32,
    queue: usize,
    breaker: BreakerRules,
}

impl CallAdmission {
    /// Creates the admission with the limits of the configuration, for at most `instances` running
    /// or suspended calls. Set `is_shared` if there can be several callers.
    pub(crate) fn new(
        server: &ServerConfig,
        breaker: BreakerRules,
        instances: usize,
        client_rate: Option<RateLimit>,
        is_shared: bool,
    ) -> Self {
        let limits = PermitLimits {
            calls: server.calls,
            suspended_calls: server.suspended_calls,
            memory: server.memory(),
            queue_timeout: server.queue_timeout,
        };
        Self {
            permits: ServerPermits::new(limits, instances, is_shared),
            activities: PluginTable::default(),
            client_rate: ArcSwapOption::from_pointee(client_rate),
            calls_per_caller: to_permits(server.calls_per_caller),
            queue: server.queue,
            breaker,
        }
    }

    /// Returns the permits that all calls share.
    pub(crate) fn permits(&self) -> &ServerPermits {
        &self.permits
    }

    /// Returns the state that all callers of this version of a plugin share.
    pub(crate) fn activity(&self, plugin: &Arc<Plugin>) -> Arc<PluginActivity> {
        self.activities.get_or_insert_with(plugin, || {
            PluginActivity::new(plugin, self.permits.new_plugin_permits(plugin))
        })
    }

    /// Replaces the rate limit of each client. Existing clients start with a new counter.
    pub(crate) fn set_client_rate(&self, rate: Option<RateLimit>) {
        self.client_rate.store(rate.map(Arc::new));
    }

    /// Creates the admission state of a new client. `name` is the caller's name.
    pub(crate) fn new_client(&self, name: &str) -> ClientAdmission {
        ClientAdmission {
            name: name.to_owned(),
            is_embedder: false,
            identity: CallerIdentity::from_name(name),
            records: PluginTable::default(),
            rate: ArcSwapOption::from_pointee(
                self.client_rate
                    .load()
                    .as_deref()
                    .copied()
                    .and_then(RateCounter::new),
            ),
            party: self.permits.new_party(self.calls_per_caller),
            // Suspended calls still count.
            queue_permits: Arc::new(Semaphore::new(
                self.max_active_calls().saturating_add(self.queue),
            )),
        }
    }

    /// Returns the maximum number of calls of one client that run or are suspended.
    fn max_active_calls(&self) -> usize {
        self.calls_per_caller
            .saturating_add(self.permits.max_suspended_calls()) as usize
    }

    /// Creates the admission state of the program that embeds the server.
    pub(crate) fn new_embedder(&self, name: &str) -> ClientAdmission {
        ClientAdmission {
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
        client: &ClientAdmission,
    ) -> Result<OwnedSemaphorePermit, CallRejection> {
        let configured = self.client_rate.load().as_deref().copied();
        if client.rate.load().as_ref().map(|rate| rate.limit()) != configured {
            // The configuration changed after this client's first call.
            client
                .rate
                .store(configured.and_then(RateCounter::new).map(Arc::new));
        }
        if let Some(rate) = &*client.rate.load() {
            let rejected = |retry_after| CallRejection {
                reason: RejectionReason::ClientRate(rate.limit()),
                retry_after: Some(retry_after),
            };
            rate.take().map_err(rejected)?;
        }
        Arc::clone(&client.queue_permits)
            .try_acquire_owned()
            .map_err(|_| {
                self.permits
                    .busy_rejection(CapacityLimit::Queue, self.queue)
            })
    }

    /// Waits until a call of the target `name` (without the prefix) may run. `activity` belongs to
    /// the plugin, and `record` to the plugin and the client. The call may use `memory`.
    ///
    /// # Errors
    ///
    /// The plugin is suspended, it is disabled for the client, a rate limit is exceeded, or no
    /// permit was released within `server.queue_timeout`.
    pub(crate) async fn acquire(
        &self,
        client: &ClientAdmission,
        activity: &PluginActivity,
        record: &CallerState,
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
        let called = Some((&activity.permits, target_party(kind, name)));
        self.permits
            .acquire(self.permits.route(&client.party, called), memory)
            .await
    }

    /// Waits until the host may do work for a client that involves no plugin. The work may use
    /// `memory`.
    ///
    /// # Errors
    ///
    /// No permit was released within `server.queue_timeout`.
    pub(crate) async fn acquire_for_host(
        &self,
        client: &ClientAdmission,
        memory: ByteSize,
    ) -> Result<CallPermit, CallRejection> {
        self.permits
            .acquire(self.permits.route(&client.party, None), memory)
            .await
    }

    /// Records whether a call crashed. Logs a warning if that disables the plugin for its caller.
    pub(crate) fn record_crash(
        &self,
        record: &CallerState,
        activity: &PluginActivity,
        crashed: bool,
        plugin: &str,
        caller: &str,
    ) {
        if record.breaker.record_outcome(crashed, self.breaker) {
            let BreakerRules {
                crashes,
                disable_duration,
            } = self.breaker;
            activity
                .suspension
                .record_disabled(caller, disable_duration);
            let duration = format_duration(disable_duration);
            tracing::warn!(
                plugin,
                caller,
                "disabled for {duration} after {crashes} crashes in a row in the calls of this caller (circuit_breaker)"
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
