//! Mechanisms that limit calls: permits, rates, suspension and circuit breakers. They do not depend
//! on the service.

pub(crate) mod breaker;
pub(crate) mod call_permit;
pub(crate) mod fair_semaphore;
pub(crate) mod plugin_permits;
pub(crate) mod plugin_table;
pub(crate) mod rate_counter;
pub(crate) mod recent_usage;
pub(crate) mod server_permits;
pub(crate) mod short_calls;
pub(crate) mod suspension;
