//! Tests of `error`.

use std::time::Duration;

use bytesize::ByteSize;

use super::*;
use crate::Limits;

#[test]
fn every_kind_has_its_own_word() {
    let words: std::collections::BTreeSet<&str> =
        ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(words.len(), ErrorKind::ALL.len());
}

#[test]
fn every_limit_names_its_value_and_its_key() {
    let limits = [
        (Limit::Fuel(10_000_000_000), "10,000,000,000", "limits.fuel"),
        (
            Limit::Deadline(Duration::from_secs(90)),
            "1m 30s",
            "limits.timeout",
        ),
        (
            Limit::Memory(ByteSize::mib(128)),
            "128.0 MiB",
            "limits.memory",
        ),
        (
            Limit::Stack(ByteSize::kib(512)),
            "512.0 KiB",
            "server.stack_size",
        ),
        (Limit::Output(ByteSize::mib(1)), "1.0 MiB", "limits.output"),
        (
            Limit::ResultSize(ByteSize::mib(16)),
            "16.0 MiB",
            "results.size",
        ),
        (Limit::OutputItems(1000), "1,000", "limits.output_items"),
        (
            Limit::Parsed(ByteSize::mib(128)),
            "128.0 MiB",
            "limits.memory",
        ),
        (
            Limit::Transfer(ByteSize::mib(16)),
            "16.0 MiB",
            "limits.transfer",
        ),
        (Limit::Stdio(ByteSize::mib(8)), "8.0 MiB", "limits.stdio"),
        (Limit::Log(ByteSize::kib(64)), "64.0 KiB", "limits.log"),
        (Limit::Handles(1000), "1,000", "limits.handles"),
        (
            Limit::Random(ByteSize::kib(64)),
            "64.0 KiB",
            "limits.random",
        ),
        (
            Limit::TableElements(20_000),
            "20,000",
            "limits.table_elements",
        ),
        (Limit::Instances(40), "40", "limits.instances"),
        (Limit::Memories(8), "8", "limits.memories"),
        (Limit::HttpRequests(1000), "1,000", "limits.http_requests"),
        (
            Limit::HttpBytes(ByteSize::mib(16)),
            "16.0 MiB",
            "limits.http_bytes",
        ),
        (Limit::AskRounds(8), "8", "limits.ask_rounds"),
        (
            Limit::AskTime(Duration::from_mins(10)),
            "10m",
            "limits.ask_timeout",
        ),
        (
            Limit::Journal(ByteSize::kib(64)),
            "64.0 KiB",
            "limits.journal",
        ),
        (
            Limit::TcpConnections(1000),
            "1,000",
            "limits.tcp_connections",
        ),
        (
            Limit::TcpBytes(ByteSize::mib(16)),
            "16.0 MiB",
            "limits.tcp_bytes",
        ),
        (
            Limit::StateSize(ByteSize::mib(10)),
            "10.0 MiB",
            "permissions.state.size",
        ),
        (Limit::StateKeys(10_000), "10,000", "permissions.state.keys"),
        (Limit::StateTotal(ByteSize::gib(1)), "1.0 GiB", "state.size"),
        (
            Limit::MountQuota(ByteSize::mib(100)),
            "100.0 MiB",
            "permissions.mounts.quota",
        ),
        (
            Limit::MountEntries(10_000),
            "10,000",
            "permissions.mounts.entries",
        ),
        (
            Limit::ScratchSize(ByteSize::mib(64)),
            "64.0 MiB",
            "permissions.scratch.size",
        ),
        (
            Limit::ScratchEntries(1000),
            "1,000",
            "permissions.scratch.entries",
        ),
    ];
    for (limit, value, key) in limits {
        let message = limit.to_string();
        assert!(message.contains(value), "{message}");
        assert!(
            message.contains(&format!(" (to allow more, raise {key}")),
            "{message}"
        );
    }
    for key in Limits::KEYS {
        let messages = limits
            .iter()
            .any(|(limit, ..)| limit.key() == format!("limits.{key}"));
        // Calls that wait for `concurrency` get a `CallRejection`; requests wait for
        // `http_connections`.
        assert!(
            messages || ["concurrency", "http_connections"].contains(key),
            "{key} has no words"
        );
    }
    let of_a_tool = Limit::Fuel(7).message("tool", Some("sum"));
    assert_eq!(
        of_a_tool,
        "The tool used all of its fuel, 7 instructions (to allow more, raise tools.sum.limits.fuel)."
    );
}
