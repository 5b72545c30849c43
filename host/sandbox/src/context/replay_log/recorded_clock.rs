//! Reproducible clocks and random numbers of a call.

use std::time::Duration;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::replay_tape::ReplayTape;
use super::tape_reel::{SMALL_ANSWER_BYTES, TapeReel};

/// Advance of the replayed clock per read after the recording has no more readings, in nanoseconds.
/// A guest that polls the clock in a loop thus reaches its target time.
pub(super) const REPLAY_TICK_NANOS: u64 = 1_000_000;

/// Resolution of the clocks, in nanoseconds, which is that of the system clock.
const CLOCK_RESOLUTION_NANOS: u64 = 1;

impl ReplayTape {
    /// Configures reproducible clocks and random numbers for the guest.
    pub(crate) fn configure_wasi(&self, context: &mut WasiCtxBuilder) {
        let Some(seed) = self.seed() else { return };
        let mut seeds = ChaCha20Rng::from_seed(seed);
        let mut next = || {
            let mut seed = [0; 32];
            seeds.fill_bytes(&mut seed);
            ChaCha20Rng::from_seed(seed)
        };
        let secure = next();
        let insecure = next();
        let mut hash = next();
        context
            .secure_random(secure)
            .insecure_random(insecure)
            .insecure_random_seed(u128::from(hash.next_u64()) << 64 | u128::from(hash.next_u64()))
            .wall_clock(TapeClock(self.clone()))
            .monotonic_clock(TapeClock(self.clone()));
    }

    fn seed(&self) -> Option<[u8; 32]> {
        Some(match &*self.lock_mode()? {
            TapeReel::Record(records) => records.answers.seed.0,
            TapeReel::Replay(plays) => plays.input.answers.seed.0,
        })
    }

    /// Returns the nanoseconds since the start of the call.
    pub(super) fn read_clock(&self) -> u64 {
        match self.lock_mode().as_deref_mut() {
            None => 0,
            Some(TapeReel::Record(records)) => {
                let now = u64::try_from(records.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if records.reserve(SMALL_ANSWER_BYTES) {
                    records
                        .answers
                        .clock
                        .push(now.saturating_sub(records.last_time));
                }
                records.last_time = now.max(records.last_time);
                records.last_time
            }
            Some(TapeReel::Replay(plays)) => {
                plays.last_time = plays
                    .last_time
                    .saturating_add(plays.clock.next().unwrap_or(REPLAY_TICK_NANOS));
                plays.last_time
            }
        }
    }

    fn start_time(&self) -> u64 {
        match self.lock_mode().as_deref() {
            None => 0,
            Some(TapeReel::Record(records)) => records.answers.began,
            Some(TapeReel::Replay(plays)) => plays.input.answers.began,
        }
    }
}

/// Clocks of a call that is recorded or replayed.
struct TapeClock(ReplayTape);

impl HostWallClock for TapeClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(CLOCK_RESOLUTION_NANOS)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.start_time().saturating_add(self.0.read_clock()))
    }
}

impl HostMonotonicClock for TapeClock {
    fn resolution(&self) -> u64 {
        CLOCK_RESOLUTION_NANOS
    }

    fn now(&self) -> u64 {
        self.0.read_clock()
    }
}
