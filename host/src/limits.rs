//! What one call may use: the numbers, where they come from, and how they are clamped.
//!
//! Three layers make a call's [`Limits`]: the server's defaults, the plugin's
//! grant, and the server's ceilings, which win. A [`LimitsPatch`] is what a
//! TOML `[limits]` table says: only the keys that are there.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// The budget of one call. Every field is enforced; none can be switched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Instructions, about: wasmtime's fuel.
    pub fuel: u64,
    /// Wall clock, from instantiation to the answer.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// Bytes of linear memory, all memories of the component together.
    pub memory: ByteSize,
    /// Elements of one table.
    pub table_elements: usize,
    /// Core instances in the component.
    pub instances: usize,
    /// Linear memories in the component.
    pub memories: usize,
    /// Bytes that may cross from the guest in one host call, or in its result.
    pub transfer: ByteSize,
    /// Host resources (streams, pollables, descriptors) open at once.
    pub handles: usize,
    /// Bytes of randomness in one request.
    pub random: ByteSize,
    /// Bytes of content and structured content in a result.
    pub output: ByteSize,
    /// Content blocks in a result.
    pub output_items: usize,
    /// Bytes the guest may write to standard output and standard error
    /// together before it is stopped.
    pub stdio: ByteSize,
    /// Bytes of log lines kept from one call; what follows is counted, not kept.
    pub log: ByteSize,
    /// Calls of the plugin at once.
    pub concurrency: usize,
}

impl Limits {
    /// What applies when nobody says anything.
    ///
    /// The reason for each number is in the book, chapter "Limits".
    pub const DEFAULT: Self = Self {
        fuel: 10_000_000_000,
        timeout: Duration::from_secs(30),
        memory: ByteSize::mib(128),
        table_elements: 20_000,
        instances: 40,
        memories: 8,
        transfer: ByteSize::mib(16),
        handles: 1_000,
        random: ByteSize::kib(64),
        output: ByteSize::mib(1),
        output_items: 1_000,
        stdio: ByteSize::mib(8),
        log: ByteSize::kib(64),
        concurrency: 16,
    };

    /// The most that a grant may ask for unless the operator says otherwise.
    pub const CEILING: Self = Self {
        fuel: 1_000_000_000_000,
        timeout: Duration::from_mins(10),
        memory: ByteSize::gib(1),
        table_elements: 20_000,
        instances: 40,
        memories: 8,
        transfer: ByteSize::mib(128),
        handles: 100_000,
        random: ByteSize::mib(1),
        output: ByteSize::mib(16),
        output_items: 100_000,
        stdio: ByteSize::mib(256),
        log: ByteSize::mib(8),
        concurrency: 64,
    };

    /// What not even the operator can raise: a pooled memory is at most 4 GiB,
    /// and the pool is built for so many instances and memories.
    pub const UTMOST: Self = Self {
        fuel: u64::MAX,
        timeout: Duration::from_hours(24),
        memory: ByteSize::gib(4),
        table_elements: 10_000_000,
        instances: 1_000,
        memories: 100,
        transfer: ByteSize::gib(1),
        handles: 1_000_000,
        random: ByteSize::mib(64),
        output: ByteSize::gib(1),
        output_items: 1_000_000,
        stdio: ByteSize::tib(1),
        log: ByteSize::gib(1),
        concurrency: 10_000,
    };

    /// These limits with the keys of `patch` put in, none above `ceiling`.
    ///
    /// The second value names every key that the ceiling lowered.
    pub fn with(&self, patch: &LimitsPatch, ceiling: &Self) -> (Self, Vec<Clamp>) {
        let mut clamps = Vec::new();
        let limits = Self {
            fuel: clamp(&mut clamps, "fuel", patch.fuel, self.fuel, ceiling.fuel, u64::to_string),
            timeout: clamp(&mut clamps, "timeout", patch.timeout, self.timeout, ceiling.timeout, |t| {
                humantime::format_duration(*t).to_string()
            }),
            memory: clamp_bytes(&mut clamps, "memory", patch.memory, self.memory, ceiling.memory),
            table_elements: clamp_count(
                &mut clamps,
                "table_elements",
                patch.table_elements,
                self.table_elements,
                ceiling.table_elements,
            ),
            instances: clamp_count(&mut clamps, "instances", patch.instances, self.instances, ceiling.instances),
            memories: clamp_count(&mut clamps, "memories", patch.memories, self.memories, ceiling.memories),
            transfer: clamp_bytes(&mut clamps, "transfer", patch.transfer, self.transfer, ceiling.transfer),
            handles: clamp_count(&mut clamps, "handles", patch.handles, self.handles, ceiling.handles),
            random: clamp_bytes(&mut clamps, "random", patch.random, self.random, ceiling.random),
            output: clamp_bytes(&mut clamps, "output", patch.output, self.output, ceiling.output),
            output_items: clamp_count(
                &mut clamps,
                "output_items",
                patch.output_items,
                self.output_items,
                ceiling.output_items,
            ),
            stdio: clamp_bytes(&mut clamps, "stdio", patch.stdio, self.stdio, ceiling.stdio),
            log: clamp_bytes(&mut clamps, "log", patch.log, self.log, ceiling.log),
            concurrency: clamp_count(
                &mut clamps,
                "concurrency",
                patch.concurrency,
                self.concurrency,
                ceiling.concurrency,
            ),
        };
        (limits, clamps)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A `[limits]` table: the keys that somebody set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct LimitsPatch {
    /// See [`Limits::fuel`].
    pub fuel: Option<u64>,
    /// See [`Limits::timeout`]: `"30s"`, `"2m"`.
    #[serde(with = "humantime_serde")]
    pub timeout: Option<Duration>,
    /// See [`Limits::memory`]: `"64MiB"` or a number of bytes.
    pub memory: Option<ByteSize>,
    /// See [`Limits::table_elements`].
    pub table_elements: Option<usize>,
    /// See [`Limits::instances`].
    pub instances: Option<usize>,
    /// See [`Limits::memories`].
    pub memories: Option<usize>,
    /// See [`Limits::transfer`].
    pub transfer: Option<ByteSize>,
    /// See [`Limits::handles`].
    pub handles: Option<usize>,
    /// See [`Limits::random`].
    pub random: Option<ByteSize>,
    /// See [`Limits::output`].
    pub output: Option<ByteSize>,
    /// See [`Limits::output_items`].
    pub output_items: Option<usize>,
    /// See [`Limits::stdio`].
    pub stdio: Option<ByteSize>,
    /// See [`Limits::log`].
    pub log: Option<ByteSize>,
    /// See [`Limits::concurrency`].
    pub concurrency: Option<usize>,
}

/// A key whose value the server's ceiling lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// The key in `[limits]`.
    pub key: &'static str,
    /// What was asked for.
    pub asked: String,
    /// What it became.
    pub ceiling: String,
}

impl fmt::Display for Clamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limits.{} = {} is above the server's ceiling; {} applies", self.key, self.asked, self.ceiling)
    }
}

fn clamp<T: Copy + Ord>(
    clamps: &mut Vec<Clamp>,
    key: &'static str,
    asked: Option<T>,
    default: T,
    ceiling: T,
    show: impl Fn(&T) -> String,
) -> T {
    let Some(asked) = asked else {
        // A default above the ceiling is no one's request: lower it in silence.
        return default.min(ceiling);
    };
    if asked > ceiling {
        clamps.push(Clamp { key, asked: show(&asked), ceiling: show(&ceiling) });
    }
    asked.min(ceiling)
}

fn clamp_bytes(
    clamps: &mut Vec<Clamp>,
    key: &'static str,
    asked: Option<ByteSize>,
    default: ByteSize,
    ceiling: ByteSize,
) -> ByteSize {
    clamp(clamps, key, asked, default, ceiling, |b| b.display().iec().to_string())
}

fn clamp_count(
    clamps: &mut Vec<Clamp>,
    key: &'static str,
    asked: Option<usize>,
    default: usize,
    ceiling: usize,
) -> usize {
    clamp(clamps, key, asked, default, ceiling, usize::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_only_its_keys() {
        let patch: LimitsPatch = toml::from_str("fuel = 7\ntimeout = \"2s\"\nmemory = \"1MiB\"").unwrap();
        let (limits, clamps) = Limits::DEFAULT.with(&patch, &Limits::CEILING);
        assert_eq!(
            limits,
            Limits { fuel: 7, timeout: Duration::from_secs(2), memory: ByteSize::mib(1), ..Limits::DEFAULT }
        );
        assert!(clamps.is_empty());
    }

    #[test]
    fn the_ceiling_wins_and_says_so() {
        let patch: LimitsPatch = toml::from_str("memory = \"8GiB\"\ntimeout = \"1h\"").unwrap();
        let (limits, clamps) = Limits::DEFAULT.with(&patch, &Limits::CEILING);
        assert_eq!(limits.memory, ByteSize::gib(1));
        assert_eq!(limits.timeout, Duration::from_mins(10));
        let said: Vec<String> = clamps.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "limits.timeout = 1h is above the server's ceiling; 10m applies",
                "limits.memory = 8.0 GiB is above the server's ceiling; 1.0 GiB applies",
            ]
        );
    }

    #[test]
    fn a_lower_ceiling_lowers_the_default_in_silence() {
        let ceiling = Limits { fuel: 5, ..Limits::CEILING };
        let (limits, clamps) = Limits::DEFAULT.with(&LimitsPatch::default(), &ceiling);
        assert_eq!(limits.fuel, 5);
        assert!(clamps.is_empty());
    }
}
