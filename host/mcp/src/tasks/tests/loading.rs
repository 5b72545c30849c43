//! Tests calls of tools whose plugins are still loading: their support for tasks is not known yet.

use std::sync::Arc;

use serde_json::{Value, json};
use toolbay_model::TaskSupport;

use super::{CORE, EXTENSION, client, declared, replying_host};
use crate::protocol::revision::Revision;
use crate::testing::stub_host::StubServer;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::all_capabilities;

/// Creates a host whose plugins are loading.
fn loading(support: TaskSupport) -> Arc<StubServer> {
    let host = replying_host("done");
    host.set_task_support(support);
    host.set_complete(false);
    host.release();
    host
}

/// Returns the response to a request that was sent.
async fn response(peer: &mut TestPeer, id: &Value) -> Value {
    loop {
        let message = peer.receive().await;
        if message["id"] == *id {
            return message;
        }
    }
}

#[tokio::test]
async fn a_call_waits_until_its_task_support_is_known() {
    let task = json!({"name": "a", "task": {}});
    let plain = json!({"name": "a"});
    for (support, revision, params, expected) in [
        (TaskSupport::Required, CORE, &task, "a task"),
        (TaskSupport::Required, CORE, &plain, "-32601"),
        (TaskSupport::Optional, CORE, &task, "a task"),
        (TaskSupport::Optional, CORE, &plain, "a result"),
        (TaskSupport::Forbidden, CORE, &task, "-32601"),
        (TaskSupport::Forbidden, CORE, &plain, "a result"),
        (
            TaskSupport::Required,
            Revision::V2025_06_18,
            &plain,
            "-32601",
        ),
        (TaskSupport::Required, EXTENSION, &plain, "a result"),
        (TaskSupport::Forbidden, EXTENSION, &plain, "a result"),
    ] {
        let host = loading(support);
        let mut peer = client(&host, revision).await;
        let call = peer.request("tools/call", params.clone()).await;
        // Other requests get their responses in the meantime.
        let method = if revision == EXTENSION {
            "server/discover"
        } else {
            "ping"
        };
        let other = peer.request_response(method, json!({})).await;
        assert!(other.get("result").is_some(), "{other}");
        assert!(peer.try_receive().is_none(), "the call waits");
        host.set_complete(true);
        let response = response(&mut peer, &json!(call)).await;
        let found = match (&response["result"], &response["error"]) {
            (result, Value::Null) if result.get("task").is_some() => "a task".to_owned(),
            (_, Value::Null) => "a result".to_owned(),
            (_, error) => error["code"].to_string(),
        };
        assert_eq!(
            found, expected,
            "{support:?} {revision} {params}: {response}"
        );
        assert!(peer.session.in_flight.is_empty());
    }
    let host = loading(TaskSupport::Required);
    let mut peer =
        TestPeer::with_capabilities(Arc::clone(&host), EXTENSION, all_capabilities()).await;
    let call = peer.request("tools/call", plain).await;
    host.set_complete(true);
    let response = response(&mut peer, &json!(call)).await;
    assert_eq!(response["error"]["code"], -32021, "{response}");
}

#[tokio::test]
async fn a_call_that_waits_for_its_plugin_can_be_cancelled_and_its_id_is_in_use() {
    for revision in [CORE, EXTENSION] {
        let host = loading(TaskSupport::Required);
        let mut peer = TestPeer::with_capabilities(Arc::clone(&host), revision, declared()).await;
        let call = peer
            .request("tools/call", json!({"name": "a", "task": {}}))
            .await;
        let params = peer.with_context(json!({"name": "a", "task": {}}));
        peer.send(&json!({"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": params}))
            .await;
        let twice = peer.receive().await;
        assert_eq!(twice["error"]["code"], -32600, "{twice}");
        peer.cancel(call).await;
        super::wait_until(|| peer.session.in_flight.is_empty()).await;
        host.set_complete(true);
        let method = if revision == EXTENSION {
            "server/discover"
        } else {
            "ping"
        };
        let next = peer.request(method, json!({})).await;
        let message = peer.receive().await;
        assert_eq!(message["id"], next, "the call has no response");
        super::wait_until(|| peer.session.request_quota.of("stdio") == 0).await;
    }
}

#[tokio::test]
async fn a_tool_that_is_missing_after_loading_is_unknown() {
    let host = loading(TaskSupport::Required);
    let mut peer = client(&host, CORE).await;
    let call = peer
        .request("tools/call", json!({"name": "none", "task": {}}))
        .await;
    host.set_complete(true);
    let response = response(&mut peer, &json!(call)).await;
    assert!(
        response.get("result").is_some() || response["error"]["code"] == -32602,
        "{response}"
    );
}

#[tokio::test]
async fn a_batch_waits_for_the_task_support_of_its_calls() {
    let host = loading(TaskSupport::Required);
    let mut peer = client(&host, Revision::V2025_03_26).await;
    let call = |id: u64, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}});
    let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
    peer.send(&json!([call(101, "a"), ping, call(102, "a")]))
        .await;
    assert!(peer.try_receive().is_none(), "the batch waits");
    host.set_complete(true);
    let responses = peer.receive().await;
    let of = |id: Value| {
        responses
            .as_array()
            .unwrap()
            .iter()
            .find(|response| response["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (
            &of(json!(101))["error"]["code"],
            &of(json!(102))["error"]["code"]
        ),
        (&json!(-32601), &json!(-32601))
    );
    assert!(of(json!("ping")).get("result").is_some());
}
