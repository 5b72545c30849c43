//! Tests of `admission`.

use std::time::Duration;

use toolbay_catalog::{ComponentContents, LoadedComponent, Plugin, PluginTerms};
use toolbay_model::Limits;
use toolbay_sandbox::{ComputePermit as _, PluginContext};

use super::*;
use crate::limits::plugin_permits::PluginPermits;

fn admission(calls: usize, calls_per_caller: usize, queue: usize) -> CallAdmission {
    let queue_timeout = Duration::from_millis(1);
    let server = ServerConfig {
        calls,
        calls_per_caller,
        queue,
        queue_timeout,
        suspended_calls: 0,
        ..ServerConfig::default()
    };
    CallAdmission::new(&server, BreakerRules::default(), usize::MAX, None, false)
}

const TOOL: (TargetKind, &str) = (TargetKind::Tool, "t");

fn plugin(concurrency: usize) -> Plugin {
    let limits = Limits {
        concurrency,
        ..Limits::DEFAULT
    };
    let terms = PluginTerms {
        context: PluginContext {
            limits,
            ..PluginContext::default()
        },
        ..PluginTerms::default()
    };
    let component = Arc::new(LoadedComponent::without_code(ComponentContents::default()));
    Plugin::new("p".to_owned(), component, Arc::default(), terms)
}

/// Returns an arbitrary permit.
pub(crate) async fn permit() -> CallPermit {
    let admission = admission(1, 1, 1);
    let client = admission.new_client("a");
    let plugin = plugin(1);
    let activity = PluginActivity::new(&plugin, admission.permits().new_plugin_permits(&plugin));
    let record = CallerState::new(&plugin);
    admission
        .acquire(&client, &activity, &record, TOOL, ByteSize::mib(1))
        .await
        .unwrap()
}

#[tokio::test]
async fn each_of_the_three_limits_is_enforced() {
    let cases = [
        (1, 9, 9, CapacityLimit::Server),
        (9, 1, 9, CapacityLimit::Client),
        (9, 9, 1, CapacityLimit::Plugin),
    ];
    for (calls, calls_per_caller, concurrency, full) in cases {
        let admission = admission(calls, calls_per_caller, 9);
        let client = admission.new_client("a");
        let plugin = plugin(concurrency);
        let activity =
            PluginActivity::new(&plugin, admission.permits().new_plugin_permits(&plugin));
        let record = CallerState::new(&plugin);
        let first = admission
            .acquire(&client, &activity, &record, TOOL, ByteSize::mib(1))
            .await
            .unwrap();
        let busy = admission
            .acquire(&client, &activity, &record, TOOL, ByteSize::mib(1))
            .await
            .unwrap_err();
        assert_eq!(busy.retry_after, Some(Duration::from_millis(100)));
        assert!(
            matches!(busy.reason, RejectionReason::Busy { limit, capacity: 1 } if limit == full),
            "{busy:?}"
        );
        drop(first);
        admission
            .acquire(&client, &activity, &record, TOOL, ByteSize::mib(1))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_memory_of_all_calls_is_bounded() {
    let memory = Some(ByteSize::mib(10));
    let queue_timeout = Duration::from_millis(1);
    let admission = CallAdmission::new(
        &ServerConfig {
            queue_timeout,
            memory,
            ..ServerConfig::default()
        },
        BreakerRules::default(),
        usize::MAX,
        None,
        false,
    );
    let client = admission.new_client("a");
    let one = plugin(9);
    let activity = PluginActivity::new(&one, admission.permits().new_plugin_permits(&one));
    let record = CallerState::new(&one);
    let admit = |memory| admission.acquire(&client, &activity, &record, TOOL, memory);
    let first = admit(ByteSize::mib(6)).await.unwrap();
    let busy = admit(ByteSize::mib(5)).await.unwrap_err();
    assert_eq!(
        busy.reason,
        RejectionReason::Busy {
            limit: CapacityLimit::Memory,
            capacity: 10 << 20
        }
    );
    let busy = admit(ByteSize::mib(4)).await.unwrap_err();
    assert_eq!(
        busy.reason,
        RejectionReason::Busy {
            limit: CapacityLimit::Memory,
            capacity: 10 << 20
        },
        "a quarter is for other plugins"
    );
    let other = plugin(9);
    let elsewhere = admission.new_client("b");
    let others = PluginActivity::new(&other, admission.permits().new_plugin_permits(&other));
    let theirs = CallerState::new(&other);
    admission
        .acquire(&elsewhere, &others, &theirs, TOOL, ByteSize::mib(4))
        .await
        .unwrap();
    drop(first);
    admit(ByteSize::mib(10)).await.unwrap();
}

#[test]
fn the_queue_is_bounded() {
    let admission = admission(1, 1, 1);
    let client = admission.new_client("a");
    let places = [
        admission.enter_queue(&client).unwrap(),
        admission.enter_queue(&client).unwrap(),
    ];
    assert_eq!(
        admission.enter_queue(&client).unwrap_err().reason,
        RejectionReason::Busy {
            limit: CapacityLimit::Queue,
            capacity: 1
        }
    );
    assert!(
        admission.enter_queue(&admission.new_client("a")).is_ok(),
        "another client has its own"
    );
    drop(places);
    assert!(admission.enter_queue(&client).is_ok());
}

fn many_tools(admission: &CallAdmission, concurrency: usize) -> PluginPermits {
    admission.permits().plugin_permits(
        to_permits(concurrency),
        ["t", "u"]
            .map(|name| target_party(TargetKind::Tool, name))
            .to_vec(),
    )
}

fn shared(server: ServerConfig) -> CallAdmission {
    CallAdmission::new(
        &ServerConfig {
            queue_timeout: Duration::from_mins(1),
            ..server
        },
        BreakerRules::default(),
        usize::MAX,
        None,
        true,
    )
}

async fn place(
    admission: &CallAdmission,
    client: &ClientAdmission,
    places: &PluginPermits,
    tool: &str,
) -> CallPermit {
    let route = admission.permits().route(
        &client.party,
        Some((places, target_party(TargetKind::Tool, tool))),
    );
    admission
        .permits()
        .acquire(route, ByteSize::mib(1))
        .await
        .unwrap()
}

async fn is_busy(
    admission: &CallAdmission,
    client: &ClientAdmission,
    places: &PluginPermits,
    tool: &str,
) -> bool {
    let next = std::pin::pin!(place(admission, client, places, tool));
    futures_util::poll!(next).is_pending()
}

#[tokio::test]
async fn no_caller_and_no_tool_has_all_places_of_a_plugin() {
    let admission = shared(ServerConfig::default());
    let places = many_tools(&admission, 8);
    let [greedy, other, third] = ["a", "b", "c"].map(|name| admission.new_client(name));
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(place(&admission, &greedy, &places, "t").await);
    }
    for tool in ["t", "u"] {
        assert!(
            is_busy(&admission, &greedy, &places, tool).await,
            "a quarter is for other callers"
        );
    }
    held.push(place(&admission, &other, &places, "t").await);
    assert!(
        is_busy(&admission, &third, &places, "t").await,
        "one place is for other tools"
    );
    held.push(place(&admission, &third, &places, "u").await);
    assert!(is_busy(&admission, &other, &places, "u").await);
}

#[tokio::test]
async fn a_caller_with_many_queued_calls_does_not_delay_others() {
    let admission = shared(ServerConfig {
        calls: 64,
        calls_per_caller: 32,
        ..ServerConfig::default()
    });
    let places = many_tools(&admission, 4);
    let [greedy, other] = ["a", "b"].map(|name| admission.new_client(name));
    let its = [
        place(&admission, &greedy, &places, "t").await,
        place(&admission, &greedy, &places, "t").await,
    ];
    let mut queue: Vec<_> = (0..30)
        .map(|_| Box::pin(place(&admission, &greedy, &places, "t")))
        .collect();
    for next in &mut queue {
        assert!(futures_util::poll!(next).is_pending());
    }
    let others = place(&admission, &other, &places, "t").await;
    let mut next = std::pin::pin!(place(&admission, &other, &places, "t"));
    assert!(
        futures_util::poll!(&mut next).is_pending(),
        "one place is for other tools"
    );
    drop(place(&admission, &greedy, &places, "u").await);
    drop(others);
    assert!(
        futures_util::poll!(&mut next).is_ready(),
        "it has the fewest"
    );
    drop(its);
    let begun: Vec<_> = queue
        .iter_mut()
        .filter_map(futures_util::FutureExt::now_or_never)
        .collect();
    assert_eq!(begun.len(), 2);
}

#[tokio::test]
async fn no_target_has_all_places_of_a_client() {
    let admission = CallAdmission::new(
        &ServerConfig::default(),
        BreakerRules::default(),
        usize::MAX,
        None,
        false,
    );
    let [one, two] = [many_tools(&admission, 16), many_tools(&admission, 16)];
    let client = admission.new_client("a");
    let mut calls: Vec<_> = (0..40)
        .map(|_| Box::pin(place(&admission, &client, &one, "t")))
        .collect();
    let mut held = Vec::new();
    for call in &mut calls {
        if let std::task::Poll::Ready(permit) = futures_util::poll!(call) {
            held.push(permit);
        }
    }
    assert_eq!(held.len(), 15);
    let of_other_tool = place(&admission, &client, &one, "u").await;
    drop(of_other_tool);
    drop(place(&admission, &client, &two, "t").await);
}

#[tokio::test]
async fn a_call_that_waits_gives_its_places_back_and_keeps_its_memory() {
    let config = ServerConfig {
        calls: 2,
        calls_per_caller: 2,
        suspended_calls: 4,
        ..ServerConfig::default()
    };
    let admission = shared(config);
    let places = many_tools(&admission, 2);
    let client = admission.new_client("a");
    let first = place(&admission, &client, &places, "t").await;
    assert!(is_busy(&admission, &client, &places, "t").await);
    assert!(first.release());
    assert_eq!(
        (
            admission.permits().running_calls().0,
            admission.permits().suspended_count(),
            admission.permits().reserved_memory().0
        ),
        (0, 1, 1 << 20)
    );
    let second = place(&admission, &client, &places, "t").await;
    assert!(
        futures_util::poll!(first.acquire()).is_pending(),
        "the second one has it"
    );
    let mut third = std::pin::pin!(place(&admission, &client, &places, "t"));
    let mut again = first.acquire();
    assert!(
        futures_util::poll!(&mut third).is_pending()
            && futures_util::poll!(&mut again).is_pending()
    );
    drop(second);
    assert!(
        futures_util::poll!(&mut third).is_pending(),
        "the resumed call goes first"
    );
    assert!(futures_util::poll!(&mut again).is_ready());
    drop(again);
    assert_eq!(
        (
            admission.permits().running_calls().0,
            admission.permits().suspended_count()
        ),
        (1, 0)
    );
    drop(first);
    assert!(futures_util::poll!(&mut third).is_ready());
    assert_eq!(
        (
            admission.permits().running_calls().0,
            admission.permits().reserved_memory().0
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn calls_that_wait_are_bounded() {
    let config = ServerConfig {
        suspended_calls: 4,
        ..ServerConfig::default()
    };
    let admission = shared(config);
    let [places, rest] = [many_tools(&admission, 16), many_tools(&admission, 16)];
    let client = admission.new_client("a");
    let mut held = Vec::new();
    for at in 0..3 {
        held.push(place(&admission, &client, &places, "t").await);
        assert_eq!(
            held.last().unwrap().release(),
            at < 2,
            "half of them are for other callers"
        );
    }
    assert_eq!(
        admission.permits().running_calls().0,
        1,
        "it keeps its place"
    );
    for (places, client, may) in [(&rest, "b", true), (&rest, "c", true), (&rest, "d", false)] {
        held.push(place(&admission, &admission.new_client(client), places, "t").await);
        assert_eq!(held.last().unwrap().release(), may);
    }
    assert_eq!(admission.permits().suspended_count(), 4);
    held.clear();
    assert_eq!(
        (
            admission.permits().suspended_count(),
            admission.permits().running_calls().0
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn a_call_that_waits_for_memory_holds_no_permit() {
    let config = ServerConfig {
        memory: Some(ByteSize::mib(4)),
        calls: 4,
        ..ServerConfig::default()
    };
    let admission = shared(config);
    let places = many_tools(&admission, 2);
    let [one, two] = ["a", "b"].map(|name| admission.new_client(name));
    let first = place(&admission, &one, &places, "t").await;
    assert!(first.release());
    let second = place(&admission, &two, &places, "t").await;
    assert!(second.release());
    let mut third = std::pin::pin!(place(&admission, &one, &places, "t"));
    assert!(
        futures_util::poll!(&mut third).is_pending(),
        "there is no memory"
    );
    assert!(
        futures_util::poll!(first.acquire()).is_ready(),
        "those that have memory go on"
    );
    drop(first);
    assert!(futures_util::poll!(&mut third).is_ready());
}
