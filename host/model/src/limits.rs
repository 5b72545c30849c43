//! The limits of one call: their values, where they come from, and how they are clamped.
//!
//! A call's [`Limits`] come from three layers: the server's defaults, the plugin's grant, and the
//! server's ceilings, which take precedence. A [`LimitsPatch`] has only the keys that a TOML
//! `[limits]` table sets. Both are generated from the one table below; to add a limit, add a row.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::OversizePolicy;
use crate::setting::positive;
use crate::text::{format_duration, format_thousands};

/// Generates [`Limits`] and [`LimitsPatch`] from rows
/// `key: type, 0 allowed or not, default, ceiling, utmost`.
macro_rules! limits {
    ($($(#[$doc:meta])* $key:ident: $type:ty, $zero:tt, $default:expr, $ceiling:expr, $utmost:expr;)*) => {
        /// The limits of one call. Every field is always enforced. Values come from
        /// [`Limits::DEFAULT`], the server's `[limits]` and the grant, clamped to the server's
        /// ceilings.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $key: $type,)*
            /// Policy for a tool result that is larger than its client accepts. It has no amount
            /// and no ceiling.
            pub oversize: OversizePolicy,
        }

        /// A parsed `[limits]` or `[ceilings]` table. `None` means that the key is not set. 0 is
        /// accepted only for `random`, `stdio`, `log`, and the limits on HTTP and TCP use.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct LimitsPatch {
            $(
                #[doc = concat!("See [`Limits::", stringify!($key), "`].")]
                #[serde(deserialize_with = $zero)]
                pub $key: Option<$type>,
            )*
            /// See [`Limits::oversize`].
            pub oversize: Option<OversizePolicy>,
        }

        impl LimitsPatch {
            /// Returns the keys that are set.
            pub fn set_keys(&self) -> Vec<&'static str> {
                let set = [$((stringify!($key), self.$key.is_some()),)*];
                set.into_iter().filter_map(|(key, is_set)| is_set.then_some(key)).collect()
            }
        }

        impl Limits {
            /// The values that apply if neither the server's `[limits]` nor a grant sets one. The
            /// chapter "Limits" of the documentation gives the reasons.
            pub const DEFAULT: Self = Self { $($key: $default,)* oversize: OversizePolicy::Link };

            /// The highest values that a grant can set, unless the operator changes them under
            /// `[ceilings]`.
            pub const CEILING: Self = Self { $($key: $ceiling,)* oversize: OversizePolicy::Link };

            /// The highest values of a ceiling. The operator cannot raise these: a pooled memory
            /// has at most 4 GiB, and the pool reserves space for instances and memories.
            pub const UTMOST: Self = Self { $($key: $utmost,)* oversize: OversizePolicy::Link };

            /// The keys of all limits, in the order of the struct.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            /// Returns these limits with the keys of `patch` applied, each clamped to `ceiling`,
            /// and one [`ClampedLimit`] for each key that was lowered.
            pub fn with(&self, patch: &LimitsPatch, ceiling: &Self) -> (Self, Vec<ClampedLimit>) {
                let mut clamps = Vec::new();
                let limits = Self {
                    $($key: clamp(&mut clamps, stringify!($key), patch.$key, self.$key, ceiling.$key),)*
                    oversize: patch.oversize.unwrap_or(self.oversize),
                };
                (limits, clamps)
            }

            /// Returns the lower value of each limit. [`Limits::oversize`], which has no amount,
            /// does not change.
            #[must_use]
            pub fn least(&self, other: &Self) -> Self {
                Self { $($key: self.$key.min(other.$key),)* oversize: self.oversize }
            }

            /// Returns all limits with their keys in `[limits]`, in the order of the struct.
            pub fn amounts(&self) -> impl Iterator<Item = (&'static str, LimitValue)> + use<> {
                [$((stringify!($key), LimitValue::from(self.$key)),)*].into_iter()
            }
        }
        /// Sets every key.
        impl From<Limits> for LimitsPatch {
            fn from(limits: Limits) -> Self {
                Self { $($key: Some(limits.$key),)* oversize: Some(limits.oversize) }
            }
        }
    };
}

/// Size of one page of linear memory. No memory is smaller, unless it is empty.
const PAGE_SIZE: ByteSize = ByteSize::kib(64);

/// Deserializes a size of linear memory: at least one page.
fn memory_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    let size: ByteSize = positive(deserializer)?;
    if size < PAGE_SIZE {
        return Err(D::Error::custom(format_args!(
            "expected at least 64KiB, one page of linear memory, not {}",
            size.display().iec()
        )));
    }
    Ok(Some(size))
}

limits! {
    /// wasmtime fuel: about one unit per WebAssembly instruction, and at least one per nanosecond
    /// of CPU time.
    fuel: u64, "crate::setting::positive", 10_000_000_000, 1_000_000_000_000, u64::MAX;
    /// Wall-clock time from the admission of the call until its result is checked. Waiting for a
    /// slot is not included.
    timeout: Duration, "crate::setting::positive", Duration::from_secs(30), Duration::from_mins(10), Duration::from_hours(24);
    /// Bytes of linear memory, summed over all memories of the component.
    memory: ByteSize, "memory_size", ByteSize::mib(128), ByteSize::gib(1), ByteSize::gib(4);
    /// Elements of each table.
    table_elements: usize, "crate::setting::positive", 20_000, 20_000, 10_000_000;
    /// Core instances in the component.
    instances: usize, "crate::setting::positive", 40, 40, 1_000;
    /// Linear memories in the component.
    memories: usize, "crate::setting::positive", 8, 8, 100;
    /// Bytes that a guest passes to the host in one host call or in its result (wasmtime's hostcall
    /// fuel).
    transfer: ByteSize, "crate::setting::positive", ByteSize::mib(16), ByteSize::mib(128), ByteSize::gib(1);
    /// Entries of the resource table that are open at once: streams, pollables, descriptors.
    handles: usize, "crate::setting::positive", 1_000, 100_000, 1_000_000;
    /// Bytes per request to `wasi:random`. 0 denies requests.
    random: ByteSize, "crate::setting::any", ByteSize::kib(64), ByteSize::mib(1), ByteSize::mib(64);
    /// Bytes of content, structured content and `_meta` of one result, or of a failure's message.
    output: ByteSize, "crate::setting::positive", ByteSize::mib(1), ByteSize::mib(16), ByteSize::gib(1);
    /// Content blocks of one result.
    output_items: usize, "crate::setting::positive", 1_000, 100_000, 1_000_000;
    /// Bytes that the guest can write to standard output and standard error together before it is
    /// trapped. 0 allows none.
    stdio: ByteSize, "crate::setting::any", ByteSize::mib(8), ByteSize::mib(256), ByteSize::tib(1);
    /// Bytes of log lines that are forwarded per call. Later lines are dropped and counted. 0
    /// allows none.
    log: ByteSize, "crate::setting::any", ByteSize::kib(64), ByteSize::mib(8), ByteSize::gib(1);
    /// HTTP requests that a call sends. 0 allows none.
    http_requests: u64, "crate::setting::any", 100, 10_000, 1_000_000;
    /// Bytes of HTTP requests and responses of a call, heads included. 0 allows none.
    http_bytes: ByteSize, "crate::setting::any", ByteSize::mib(64), ByteSize::gib(1), ByteSize::tib(1);
    /// HTTP connections of the plugin that are open at once. Like `concurrency`, it belongs to the
    /// plugin.
    http_connections: usize, "crate::setting::positive", 16, 64, 1_000;
    /// Number of times that a call asks its caller questions. 0 allows none.
    ask_rounds: u64, "crate::setting::any", 8, 32, 1_000;
    /// Time from a call's first question until its last answer.
    ask_timeout: Duration, "crate::setting::positive", Duration::from_mins(10), Duration::from_hours(1), Duration::from_hours(24);
    /// Bytes of answers, and of results of operations before a question, that are stored until the
    /// call runs again.
    journal: ByteSize, "crate::setting::positive", ByteSize::kib(64), ByteSize::mib(1), ByteSize::mib(8);
    /// TCP connections that a call makes, one after the other or at once. 0 allows none.
    tcp_connections: u64, "crate::setting::any", 100, 10_000, 1_000_000;
    /// Bytes that a call sends and receives over TCP connections. 0 allows none.
    tcp_bytes: ByteSize, "crate::setting::any", ByteSize::mib(64), ByteSize::gib(1), ByteSize::tib(1);
    /// Calls of the plugin that run at once. Unlike the other fields, it belongs to the plugin, not
    /// to a call.
    concurrency: usize, "crate::setting::positive", 16, 64, 10_000;
}

impl Limits {
    /// Returns the limits that differ from those of `other`, with their keys and the values of
    /// `self`.
    pub fn differences_from(
        &self,
        other: &Self,
    ) -> impl Iterator<Item = (&'static str, LimitValue)> + use<> {
        self.amounts()
            .zip(other.amounts())
            .filter(|(amount, other_amount)| amount != other_amount)
            .map(|(amount, _)| amount)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_amounts(self.amounts(), serializer)
    }
}

/// The value of a limit, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitValue {
    /// A number without a unit: fuel, elements, calls.
    Count(u64),
    /// A size in bytes.
    Bytes(ByteSize),
    /// A duration.
    Time(Duration),
}

impl LimitValue {
    /// Returns the value in the format of a configuration file: a number without commas.
    pub fn to_config_string(self) -> String {
        match self {
            Self::Count(n) => n.to_string(),
            amount => amount.to_string(),
        }
    }
}

impl From<u64> for LimitValue {
    fn from(n: u64) -> Self {
        Self::Count(n)
    }
}

impl From<usize> for LimitValue {
    fn from(n: usize) -> Self {
        Self::Count(n as u64)
    }
}

impl From<ByteSize> for LimitValue {
    fn from(size: ByteSize) -> Self {
        Self::Bytes(size)
    }
}

impl From<Duration> for LimitValue {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl fmt::Display for LimitValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => f.write_str(&format_thousands(*n)),
            Self::Bytes(size) => size.display().iec().fmt(f),
            Self::Time(time) => format_duration(*time).fmt(f),
        }
    }
}

/// Serializes limits as a map for programs: sizes in bytes, durations in milliseconds under
/// `<key>_ms`.
pub fn serialize_amounts<S: Serializer>(
    amounts: impl IntoIterator<Item = (&'static str, LimitValue)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (key, amount) in amounts {
        match amount {
            LimitValue::Count(n) => map.serialize_entry(key, &n)?,
            LimitValue::Bytes(size) => map.serialize_entry(key, &size.as_u64())?,
            LimitValue::Time(time) => {
                map.serialize_entry(&format!("{key}_ms"), &milliseconds(time))?;
            }
        }
    }
    map.end()
}

/// Returns `time` in whole milliseconds, saturating at `u64::MAX`.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A limit that was lowered to its ceiling. Displayed as one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClampedLimit {
    /// The key in `[limits]`.
    pub key: &'static str,
    /// The value that was set.
    pub requested: LimitValue,
    /// The ceiling that applies instead.
    pub ceiling: LimitValue,
}

impl fmt::Display for ClampedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            requested,
            ceiling,
        } = self;
        let requested_text = requested.to_config_string();
        let ceiling_text = ceiling.to_config_string();
        write!(
            f,
            "limits.{key} = {requested_text} was lowered to the server's ceiling, {ceiling_text} (to allow more, raise ceilings.{key})"
        )
    }
}

/// Returns `requested` clamped to `ceiling`, or `default` if no value was requested. Lowering the
/// default causes no warning, because no operator set it.
fn clamp<T: Copy + Ord + Into<LimitValue>>(
    clamps: &mut Vec<ClampedLimit>,
    key: &'static str,
    requested: Option<T>,
    default: T,
    ceiling: T,
) -> T {
    if let Some(requested) = requested.filter(|requested| *requested > ceiling) {
        clamps.push(ClampedLimit {
            key,
            requested: requested.into(),
            ceiling: ceiling.into(),
        });
    }
    requested.unwrap_or(default).min(ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(json: serde_json::Value) -> LimitsPatch {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_patch_changes_only_its_keys() {
        let patch = patch(serde_json::json!({"fuel": 7, "timeout": "2s", "memory": "1MiB"}));
        assert_eq!(patch.set_keys(), ["fuel", "timeout", "memory"]);
        let (limits, clamps) = Limits::DEFAULT.with(&patch, &Limits::CEILING);
        assert_eq!(
            limits,
            Limits {
                fuel: 7,
                timeout: Duration::from_secs(2),
                memory: ByteSize::mib(1),
                ..Limits::DEFAULT
            }
        );
        assert!(clamps.is_empty());
    }

    #[test]
    fn least_has_the_lower_value_of_each_limit() {
        let [one, two] = [
            serde_json::json!({"fuel": 7, "timeout": "2s"}),
            serde_json::json!({"fuel": 9, "timeout": "1s"}),
        ]
        .map(|json| Limits::DEFAULT.with(&patch(json), &Limits::CEILING).0);
        let lowest = Limits {
            fuel: 7,
            timeout: Duration::from_secs(1),
            ..Limits::DEFAULT
        };
        assert_eq!(
            (one.least(&two), two.least(&one)),
            (lowest.clone(), lowest.clone())
        );
        assert_eq!(
            Limits::CEILING
                .with(&lowest.clone().into(), &Limits::CEILING)
                .0,
            lowest
        );
    }

    #[test]
    fn a_value_above_the_ceiling_is_clamped_and_reported() {
        let patch = patch(serde_json::json!({"memory": "8GiB", "timeout": "1h"}));
        let (limits, clamps) = Limits::DEFAULT.with(&patch, &Limits::CEILING);
        assert_eq!(limits.memory, ByteSize::gib(1));
        assert_eq!(limits.timeout, Duration::from_mins(10));
        let messages: Vec<String> = clamps.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "limits.timeout = 1h was lowered to the server's ceiling, 10m (to allow more, raise ceilings.timeout)",
                "limits.memory = 8.0 GiB was lowered to the server's ceiling, 1.0 GiB (to allow more, raise ceilings.memory)",
            ]
        );
    }

    #[test]
    fn a_lower_ceiling_lowers_the_default_without_a_warning() {
        let ceiling = Limits {
            fuel: 5,
            ..Limits::CEILING
        };
        let (limits, clamps) = Limits::DEFAULT.with(&LimitsPatch::default(), &ceiling);
        assert_eq!(limits.fuel, 5);
        assert!(clamps.is_empty());
    }
}
