//! What one call may use: the numbers, where they come from, and how they are clamped.
//!
//! Three layers make a call's [`Limits`]: the server's defaults, the plugin's
//! grant, and the server's ceilings, which win. A [`LimitsPatch`] is what a
//! TOML `[limits]` table says: only the keys that are there.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::sandbox::thousands;
use crate::toml_file::setting::{any, positive};

/// The budget of one call. Every field is enforced; none can be switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, about: wasmtime's fuel.
    pub fuel: u64,
    /// Wall clock, from instantiation to the answer.
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

impl Limits {
    /// Every limit by its key, to be shown and compared.
    pub fn amounts(&self) -> [(&'static str, Amount); 14] {
        // Each is named, so that the compiler misses one that is added.
        let Self {
            fuel,
            timeout,
            memory,
            table_elements,
            instances,
            memories,
            transfer,
            handles,
            random,
            output,
            output_items,
            stdio,
            log,
            concurrency,
        } = *self;
        let count = |n: usize| Amount::Count(n as u64);
        [
            ("fuel", Amount::Count(fuel)),
            ("timeout", Amount::Time(timeout)),
            ("memory", Amount::Bytes(memory)),
            ("table_elements", count(table_elements)),
            ("instances", count(instances)),
            ("memories", count(memories)),
            ("transfer", Amount::Bytes(transfer)),
            ("handles", count(handles)),
            ("random", Amount::Bytes(random)),
            ("output", Amount::Bytes(output)),
            ("output_items", count(output_items)),
            ("stdio", Amount::Bytes(stdio)),
            ("log", Amount::Bytes(log)),
            ("concurrency", count(concurrency)),
        ]
    }

    /// The limits that are not as in `other`, by their keys.
    pub fn unlike(&self, other: &Self) -> impl Iterator<Item = (&'static str, Amount)> {
        self.amounts().into_iter().zip(other.amounts()).filter(|(here, there)| here != there).map(|(here, _)| here)
    }
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_amounts(self.amounts(), serializer)
    }
}

/// How much a limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Amount {
    /// So many.
    Count(u64),
    /// So many bytes.
    Bytes(ByteSize),
    /// So long.
    Time(Duration),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => f.write_str(&thousands(*n)),
            Self::Bytes(size) => size.display().iec().fmt(f),
            Self::Time(time) => humantime::format_duration(*time).fmt(f),
        }
    }
}

/// Writes limits for programs: bytes as they are, times in milliseconds, which their keys say.
pub fn serialize_amounts<S: Serializer>(
    amounts: impl IntoIterator<Item = (&'static str, Amount)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (key, amount) in amounts {
        match amount {
            Amount::Count(n) => map.serialize_entry(key, &n)?,
            Amount::Bytes(size) => map.serialize_entry(key, &size.as_u64())?,
            Amount::Time(time) => map.serialize_entry(&format!("{key}_ms"), &milliseconds(time))?,
        }
    }
    map.end()
}

/// As JSON has times.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A `[limits]` table: the keys that somebody set. 0 is a value where none is a sensible number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsPatch {
    /// See [`Limits::fuel`].
    #[serde(deserialize_with = "positive")]
    pub fuel: Option<u64>,
    /// See [`Limits::timeout`]: `"30s"`, `"2m"`.
    #[serde(deserialize_with = "positive")]
    pub timeout: Option<Duration>,
    /// See [`Limits::memory`]: `"64MiB"` or a number of bytes.
    #[serde(deserialize_with = "positive")]
    pub memory: Option<ByteSize>,
    /// See [`Limits::table_elements`].
    #[serde(deserialize_with = "positive")]
    pub table_elements: Option<usize>,
    /// See [`Limits::instances`].
    #[serde(deserialize_with = "positive")]
    pub instances: Option<usize>,
    /// See [`Limits::memories`].
    #[serde(deserialize_with = "positive")]
    pub memories: Option<usize>,
    /// See [`Limits::transfer`].
    #[serde(deserialize_with = "positive")]
    pub transfer: Option<ByteSize>,
    /// See [`Limits::handles`].
    #[serde(deserialize_with = "positive")]
    pub handles: Option<usize>,
    /// See [`Limits::random`].
    #[serde(deserialize_with = "any")]
    pub random: Option<ByteSize>,
    /// See [`Limits::output`].
    #[serde(deserialize_with = "positive")]
    pub output: Option<ByteSize>,
    /// See [`Limits::output_items`].
    #[serde(deserialize_with = "positive")]
    pub output_items: Option<usize>,
    /// See [`Limits::stdio`].
    #[serde(deserialize_with = "any")]
    pub stdio: Option<ByteSize>,
    /// See [`Limits::log`].
    #[serde(deserialize_with = "any")]
    pub log: Option<ByteSize>,
    /// See [`Limits::concurrency`].
    #[serde(deserialize_with = "positive")]
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
