//! Tests the memory that tasks take, their lifetime, and the wake-ups that they cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use futures_util::FutureExt as _;
use futures_util::task::ArcWake;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use toolbay_background::QuotaExhausted;
use toolbay_model::{CallError, CallFailure, ProgressUpdate};

use super::super::memory_store::MemoryTaskStore;
use super::super::store::{ReservationError, TaskStore as _};
use super::super::task_state::{TASK_OVERHEAD_BYTES, Task, TaskEnd, TaskState};
use super::super::{LiveTask, TaskOptions, TaskPhase};
use super::{
    CORE, EXTENSION, begin_task, client, get_task, host, host_tasks, immediate_task_options,
    no_task_options, replying_host, slow_call_params, wait_for_status, wait_until,
};
use crate::exchange::resource_subscriptions::MAX_SUBSCRIPTIONS;
use crate::protocol::jsonrpc::Error;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::text_reply;

fn task(id: &str) -> Arc<Task> {
    Arc::new(Task::new(
        id.into(),
        CORE,
        SystemTime::now(),
        Duration::from_hours(1),
    ))
}

fn ended(task: &Task, ended: TaskEnd) -> Arc<Task> {
    Arc::new(task.with_state(TaskState::Ended(Arc::new(ended))))
}

fn in_an_hour() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_hours(1)
}

/// Creates a store in which one caller can have this many bytes.
fn store(bytes: usize) -> MemoryTaskStore {
    MemoryTaskStore::new(&TaskOptions {
        memory: ByteSize::b(4 * bytes as u64),
        ..TaskOptions::default()
    })
}

#[tokio::test]
async fn capacity_is_reserved_before_a_result_is_stored_and_is_always_available_for_an_error() {
    let store = store(2 * TASK_OVERHEAD_BYTES + 1_000);
    let first = task("1");
    let second = task("2");
    store.add("ada", &first, in_an_hour()).await.unwrap();
    store.add("ada", &second, in_an_hour()).await.unwrap();
    store.reserve("ada", "1", 900).await.unwrap();
    let full = Err(ReservationError::Exhausted(QuotaExhausted::Own(
        2 * TASK_OVERHEAD_BYTES + 1_000,
    )));
    assert_eq!(store.reserve("ada", "2", 101).await, full);
    store.reserve("ada", "2", 100).await.unwrap();
    assert_eq!(
        store.reserve("bob", "1", 1).await,
        Err(ReservationError::Removed),
        "it is not that caller's"
    );
    // The error for missing capacity takes the place of the message of a running task.
    store
        .update(
            "ada",
            &ended(&first, TaskEnd::failed(Error::new(0, "x".repeat(1_000)))),
        )
        .await;
    store.reserve("ada", "2", 1_000).await.unwrap();
    assert_eq!(store.reserve("ada", "2", 1_001).await, full);
    // A cancelled task can be evicted.
    store
        .update("ada", &Arc::new(first.with_state(TaskState::Cancelled)))
        .await;
    store.reserve("ada", "2", 1_001).await.unwrap();
    assert!(store.get("ada", "1").await.is_none());
    store.update("ada", &first).await;
    assert!(
        store.get("ada", "1").await.is_none(),
        "what was forgotten does not come back"
    );
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_is_never_visible() {
    for revision in [CORE, EXTENSION] {
        let host = host(|_| Some(Ok(text_reply(&"x".repeat(1 << 20)))));
        // There is no capacity beyond the task itself.
        let host = host.with_tasks(TaskOptions {
            memory: ByteSize::b(4 * TASK_OVERHEAD_BYTES as u64),
            ..immediate_task_options()
        });
        let mut peer = client(&host, revision).await;
        let id = begin_task(&mut peer).await;
        let live = host_tasks(&host).get_live("stdio", &id).unwrap();
        let mut states = live.subscribe_states();
        host.release();
        states.changed().await.unwrap();
        let TaskState::Ended(ended) = &live.task().state else {
            panic!("{:?}", live.task())
        };
        assert!(
            matches!(ended.outcome, crate::tasks::TaskOutcome::Error(_)),
            "it is never completed"
        );
        let task = wait_for_status(&mut peer, &id, "failed").await;
        let error = match revision {
            CORE => peer.error("tasks/result", json!({"taskId": id})).await,
            _ => task["error"].clone(),
        };
        assert_eq!(
            (&error["code"], &error["data"]["dev.toolbay/error"]),
            (&json!(-32010), &json!("busy"))
        );
        let message = error["message"].as_str().unwrap();
        let bytes: usize = message
            .split(' ')
            .find_map(|word| word.parse().ok())
            .unwrap();
        assert!((1 << 20..(1 << 20) + 500).contains(&bytes), "{message}");
        let rest = format!(
            " bytes, which is more than the remaining space; the tasks of this caller can have {TASK_OVERHEAD_BYTES} bytes \
             together (tasks.memory). Wait until some tasks expire, or request a smaller result, and call again."
        );
        assert_eq!(
            message,
            format!("The result was lost: it has {bytes}{rest}")
        );
    }
}

#[tokio::test]
async fn tasks_that_have_ended_leave_no_timers() {
    let host = replying_host("done").with_tasks(TaskOptions {
        ttl: Duration::from_hours(1),
        ..immediate_task_options()
    });
    let mut peer = client(&host, CORE).await;
    let id = begin_task(&mut peer).await;
    host.release();
    wait_for_status(&mut peer, &id, "completed").await;
    let alive = || Handle::current().metrics().num_alive_tasks();
    let before = alive();
    for _ in 0..500 {
        let id = begin_task(&mut peer).await;
        wait_for_status(&mut peer, &id, "completed").await;
    }
    wait_until(|| alive() <= before).await;
}

/// Waits until a task that is started now has expired. All earlier tasks have then expired too.
async fn time_passes(peer: &mut TestPeer) {
    let id = begin_task(peer).await;
    while peer
        .request_response("tasks/get", json!({"taskId": id}))
        .await
        .get("error")
        .is_none()
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn expired_tasks_leave_nothing_behind() {
    let host = replying_host("done").with_tasks(TaskOptions {
        ttl: Duration::from_millis(200),
        memory: ByteSize::mib(64),
        ..immediate_task_options()
    });
    let mut peer = client(&host, CORE).await;
    let mut ids = Vec::new();
    for n in 0..300 {
        let id = begin_task(&mut peer).await;
        if n % 3 == 0 {
            peer.request_response("tasks/cancel", json!({"taskId": id}))
                .await;
        }
        ids.push(id);
    }
    // A request waits for the last task, and is notified.
    let waiting = peer
        .request("tasks/result", json!({"taskId": ids[299]}))
        .await;
    let response = loop {
        let message = peer.receive().await;
        if message["id"] == waiting {
            break message;
        }
    };
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("Unknown task: "),
        "{response}"
    );
    time_passes(&mut peer).await;
    wait_until(|| host.waiting() == 0).await;
    let tasks = host_tasks(&host);
    wait_until(|| tasks.live_tasks().is_empty()).await;
    assert_eq!(
        peer.result("tasks/list", json!({})).await["tasks"],
        json!([])
    );
    // There is capacity for the same number of tasks, which end.
    for _ in 0..1_000 {
        begin_task(&mut peer).await;
    }
    host.release();
}

#[tokio::test]
async fn a_call_that_never_becomes_a_task_responds_regardless_of_the_task_lifetime() {
    let host = replying_host("done").with_tasks(TaskOptions {
        ttl: Duration::from_millis(50),
        ..no_task_options()
    });
    let mut peer = client(&host, EXTENSION).await;
    let request = peer.request("tools/call", slow_call_params()).await;
    wait_until(|| host.waiting() == 1).await;
    time_passes(&mut client(&host, CORE).await).await;
    host.release();
    let response = loop {
        let message = peer.receive().await;
        if message["id"] == request {
            break message;
        }
    };
    assert_eq!(response["result"]["resultType"], "complete", "{response}");
}

#[tokio::test]
async fn watched_tasks_count_against_the_quota_of_their_caller() {
    let host = replying_host("done");
    let mut core = client(&host, EXTENSION).await;
    let mut ids = Vec::new();
    for _ in 0..MAX_SUBSCRIPTIONS + 10 {
        ids.push(begin_task(&mut core).await);
    }
    let mut peer = client(&host, EXTENSION).await;
    let listen = async |peer: &mut TestPeer, ids: &[String]| {
        let id = peer
            .request(
                "subscriptions/listen",
                json!({"notifications": {"taskIds": ids}}),
            )
            .await;
        let acknowledged = peer.receive().await;
        assert_eq!(
            acknowledged["method"], "notifications/subscriptions/acknowledged",
            "{acknowledged}"
        );
        (
            id,
            acknowledged["params"]["notifications"]["taskIds"]
                .as_array()
                .map_or(0, Vec::len),
        )
    };
    let (first, honoured) = listen(&mut peer, &ids).await;
    assert_eq!(honoured, MAX_SUBSCRIPTIONS);
    let bytes = host.updates().bytes_of("stdio");
    assert_eq!(bytes, MAX_SUBSCRIPTIONS * 512);
    assert_eq!(
        peer.session.request_quota.of("stdio"),
        0,
        "the filter is gone"
    );
    // More streams do not raise the limit.
    let mut all = honoured;
    let mut streams = vec![first];
    loop {
        let (stream, honoured) = listen(&mut peer, &ids).await;
        streams.push(stream);
        all += honoured;
        if honoured < MAX_SUBSCRIPTIONS {
            break;
        }
    }
    assert_eq!(all, (1 << 20) / 512);
    for stream in streams {
        peer.cancel(stream).await;
    }
    wait_until(|| host.updates().bytes_of("stdio") == 0).await;
    let (_, honoured) = listen(&mut peer, &["x".repeat(200), ids[0].clone()]).await;
    assert_eq!(honoured, 1);
}

#[tokio::test]
async fn a_ttl_is_an_integer_in_any_json_notation() {
    let host = replying_host("done");
    let mut peer = client(&host, CORE).await;
    let hour = 3_600_000;
    for (ttl, kept) in [
        ("60000.0", 60_000),
        ("6e4", 60_000),
        ("60000", 60_000),
        ("1e300", hour),
        ("0", 10_000),
        ("null", hour),
    ] {
        let task = format!(r#"{{"ttl": {ttl}}}"#);
        let task: Value = serde_json::from_str(&task).unwrap();
        let created = peer
            .result("tools/call", json!({"name": "a", "task": task}))
            .await;
        assert_eq!(created["task"]["ttl"], kept, "{ttl}");
    }
    for ttl in [json!(60_000.5), json!(-1), json!(-60_000.0), json!("60000")] {
        assert_eq!(
            peer.error("tools/call", json!({"name": "a", "task": {"ttl": ttl}}))
                .await["code"],
            -32602,
            "{ttl}"
        );
    }
}

fn live() -> LiveTask {
    LiveTask::new(
        "ada",
        Task::clone(&task("1")),
        in_an_hour(),
        TaskPhase::Task,
    )
}

#[test]
fn an_ended_task_does_not_change() {
    let live = live();
    assert!(live.set_state(TaskState::Cancelled));
    let failed = || TaskState::Ended(Arc::new(TaskEnd::failed(Error::new(0, "too late"))));
    assert!(!live.set_state(failed()) && !live.set_state(TaskState::Working));
    drop(live.ask(Vec::new()));
    live.report_progress(&ProgressUpdate {
        progress: 1.0,
        total: None,
        message: None,
    });
    assert!(matches!(live.task().state, TaskState::Cancelled));
}

/// Counts wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl ArcWake for Woken {
    fn wake_by_ref(woken: &Arc<Self>) {
        woken.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn progress_wakes_only_interested_waiters() {
    let live = live();
    let [mut states, mut changes] = [live.subscribe_states(), live.subscribe_changes()];
    let waits = Arc::<Woken>::default();
    let listens = Arc::<Woken>::default();
    let mut waiting = Box::pin(states.changed());
    let mut listening = Box::pin(changes.changed());
    let wakers = [&waits, &listens].map(|woken| futures_util::task::waker(Arc::clone(woken)));
    assert!(
        waiting
            .poll_unpin(&mut Context::from_waker(&wakers[0]))
            .is_pending()
    );
    assert!(
        listening
            .poll_unpin(&mut Context::from_waker(&wakers[1]))
            .is_pending()
    );
    live.report_progress(&ProgressUpdate {
        progress: 1.0,
        total: None,
        message: None,
    });
    assert_eq!(
        [&waits, &listens].map(|woken| woken.0.load(Ordering::Relaxed)),
        [0, 1]
    );
    live.set_state(TaskState::Cancelled);
    assert_eq!(waits.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_task_that_is_cancelled_while_its_call_ends_is_cancelled_or_has_its_result() {
    for revision in [CORE, EXTENSION] {
        let host = host(|_| Some(Err(CallFailure::Call(CallError::Failed("no luck".into())))));
        let mut peer = client(&host, revision).await;
        let mut ids = Vec::new();
        for _ in 0..100 {
            ids.push(begin_task(&mut peer).await);
        }
        host.release();
        let mut seen = Vec::new();
        for id in &ids {
            let cancelled = peer
                .request_response("tasks/cancel", json!({"taskId": id}))
                .await;
            let status = get_task(&mut peer, id).await["status"].clone();
            if revision == CORE && cancelled.get("error").is_none() {
                assert_eq!(status, "cancelled");
            }
            seen.push(status);
        }
        wait_until(|| host.waiting() == 0 && host_tasks(&host).live_tasks().is_empty()).await;
        for (id, status) in ids.iter().zip(seen) {
            assert_eq!(get_task(&mut peer, id).await["status"], status);
        }
    }
}
