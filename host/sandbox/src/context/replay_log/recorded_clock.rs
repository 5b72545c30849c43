//! Reproducible clocks and random numbers of a call.

use std::time::Duration;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::replay_tape::ReplayTape;
use super::tape_reel::{SMALL_ANSWER_BYTES, TapeMode};

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
            TapeMode::Record(recording) => recording.answers.seed.0,
            TapeMode::Replay(playback) => playback.input.answers.seed.0,
        })
    }

    /// Returns the nanoseconds since the start of the call.
    pub(super) fn read_clock(&self) -> u64 {
        match self.lock_mode().as_deref_mut() {
            None => 0,
            Some(TapeMode::Record(recording)) => {
                let now = u64::try_from(recording.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if recording.reserve(SMALL_ANSWER_BYTES) {
                    recording
                        .answers
                        .clock
                        .push(now.saturating_sub(recording.last_time));
                }
                recording.last_time = now.max(recording.last_time);
                recording.last_time
            }
            Some(TapeMode::Replay(playback)) => {
                playback.last_time = playback
                    .last_time
                    .saturating_add(playback.clock.next().unwrap_or(REPLAY_TICK_NANOS));
                playback.last_time
            }
        }
    }

    fn start_time(&self) -> u64 {
        match self.lock_mode().as_deref() {
            None => 0,
            Some(TapeMode::Record(recording)) => recording.answers.began,
            Some(TapeMode::Replay(playback)) => playback.input.answers.began,
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
