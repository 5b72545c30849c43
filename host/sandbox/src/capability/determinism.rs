//! Deterministic clocks and random numbers: they are the same in every call with the same request.
//! For tests of plugins (`permissions.deterministic`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};
use toolbay_model::{CompletionReference, CompletionRequest};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use crate::context::plugin_request::PluginRequest;

/// Start time of each call on the wall clock: 2020-01-01T00:00:00Z, in hours since 1970.
const START_TIME: Duration = Duration::from_hours(438_288);

/// Time by which each reading advances the clock, in nanoseconds. A guest that polls the clock in a
/// loop reaches any time.
const TICK_NANOSECONDS: u64 = 1_000_000;

/// The seed of a call. Equal requests have equal seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSeed([u8; 32]);

/// The virtual time of one call, in nanoseconds since it started. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTime(Arc<AtomicU64>);

impl CallSeed {
    pub(crate) fn new(request: PluginRequest<'_>) -> Self {
        match request {
            PluginRequest::Tool { name, arguments } => {
                Self::from_parts("call", &[name.as_bytes(), arguments.as_bytes()])
            }
            PluginRequest::Prompt { name, arguments } => {
                let parts = arguments
                    .iter()
                    .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
                Self::from_parts(
                    "prompt",
                    &std::iter::once(name.as_bytes())
                        .chain(parts)
                        .collect::<Vec<_>>(),
                )
            }
            PluginRequest::Resource { uri } => Self::from_parts("resource", &[uri.as_bytes()]),
            PluginRequest::Completion(CompletionRequest {
                reference,
                argument,
                value,
                context,
            }) => {
                let (kind, name) = match reference {
                    CompletionReference::Prompt(name) => ("prompt", name),
                    CompletionReference::Resource(uri) => ("resource", uri),
                };
                let context = context
                    .iter()
                    .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
                let parts = [kind, name, argument, value]
                    .map(str::as_bytes)
                    .into_iter()
                    .chain(context);
                Self::from_parts("completion", &parts.collect::<Vec<_>>())
            }
        }
    }

    /// Creates the seed for initializing the component file with this digest in advance.
    pub(crate) fn for_file(digest: &[u8]) -> Self {
        Self::from_parts("file", &[digest])
    }

    fn from_parts(purpose: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix("toolbay deterministic ");
        hash.update(purpose);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Derives the seed of one interface, so that interfaces do not repeat each other's random
    /// numbers.
    fn for_interface(self, name: &str) -> [u8; 32] {
        Self::from_parts(name, &[&self.0]).0
    }

    /// Configures the clocks and random numbers of a guest with this seed.
    pub(crate) fn apply(self, builder: &mut WasiCtxBuilder) -> CallTime {
        let time = CallTime::default();
        let mut seeds = ChaCha20Rng::from_seed(self.for_interface("insecure-seed"));
        let hash_seed = u128::from(seeds.next_u64()) << 64 | u128::from(seeds.next_u64());
        builder
            .wall_clock(time.clone())
            .monotonic_clock(time.clone())
            .secure_random(ChaCha20Rng::from_seed(self.for_interface("random")))
            .insecure_random(ChaCha20Rng::from_seed(self.for_interface("insecure")))
            .insecure_random_seed(hash_seed);
        time
    }
}

impl CallTime {
    /// Reads the clock, which advances it.
    pub(crate) fn advance(&self) -> u64 {
        let next_tick = |now: u64| Some(now.saturating_add(TICK_NANOSECONDS));
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_tick)
            .unwrap_or_default()
    }

    /// Advances the clock to at least `when`, because the guest waited until then.
    pub(crate) fn advance_to(&self, when: u64) {
        self.0.fetch_max(when, Ordering::Relaxed);
    }
}

impl HostWallClock for CallTime {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(TICK_NANOSECONDS)
    }

    fn now(&self) -> Duration {
        START_TIME.saturating_add(Duration::from_nanos(self.advance()))
    }
}

impl HostMonotonicClock for CallTime {
    fn resolution(&self) -> u64 {
        TICK_NANOSECONDS
    }

    fn now(&self) -> u64 {
        self.advance()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn random(seed: CallSeed, interface: &str) -> u64 {
        ChaCha20Rng::from_seed(seed.for_interface(interface)).next_u64()
    }

    #[test]
    fn only_the_same_call_has_the_same_numbers() {
        let tool = |name, arguments| CallSeed::new(PluginRequest::Tool { name, arguments });
        let seed = tool("roll", "{}");
        assert_eq!(random(seed, "random"), random(tool("roll", "{}"), "random"));
        let none = BTreeMap::new();
        let some = BTreeMap::from([("roll".to_owned(), "{}".to_owned())]);
        let request = |reference| CompletionRequest {
            reference,
            argument: "roll".into(),
            value: "{}".into(),
            context: BTreeMap::new(),
        };
        let of_prompt = request(CompletionReference::Prompt("roll".into()));
        let of_template = request(CompletionReference::Resource("roll".into()));
        let others = [
            tool("roll", "{\"n\":1}"),
            tool("rol", "l{}"),
            tool("", "roll{}"),
            CallSeed::new(PluginRequest::Prompt {
                name: "roll",
                arguments: &none,
            }),
            CallSeed::new(PluginRequest::Prompt {
                name: "roll",
                arguments: &some,
            }),
            CallSeed::new(PluginRequest::Resource { uri: "roll" }),
            CallSeed::new(PluginRequest::Completion(&of_prompt)),
            CallSeed::new(PluginRequest::Completion(&of_template)),
        ];
        let numbers: BTreeSet<u64> = others
            .iter()
            .map(|other| random(*other, "random"))
            .collect();
        assert_eq!(numbers.len(), others.len(), "each request is different");
        assert!(
            others
                .iter()
                .all(|other| random(*other, "random") != random(seed, "random"))
        );
        assert_ne!(random(seed, "random"), random(seed, "insecure"));
        // A tool's reply must not change with the next version of the server.
        assert_eq!(random(seed, "random"), 0x7749_91bc_3a61_e84f);
    }

    #[test]
    fn each_reading_advances_both_clocks_and_waiting_does_too() {
        let time = CallTime::default();
        assert_eq!(HostMonotonicClock::now(&time), 0);
        assert_eq!(
            HostWallClock::now(&time),
            START_TIME + Duration::from_nanos(TICK_NANOSECONDS)
        );
        time.advance_to(30 * TICK_NANOSECONDS);
        assert_eq!(HostMonotonicClock::now(&time), 30 * TICK_NANOSECONDS);
        time.advance_to(5);
        assert_eq!(
            HostMonotonicClock::now(&time),
            31 * TICK_NANOSECONDS,
            "time does not go back"
        );
        time.advance_to(u64::MAX);
        assert_eq!([time.advance(), time.advance()], [u64::MAX; 2]);
        assert!(HostWallClock::now(&time) > START_TIME);
    }
}
