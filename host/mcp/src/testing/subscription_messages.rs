//! Tests of the notifications that clients of each revision receive without a request.

use std::sync::Arc;

use serde_json::json;

use crate::exchange::resource_subscriptions::MAX_SUBSCRIPTIONS;
use crate::lists::access_rights::CallerRights;
use crate::protocol::revision::Revision;
use crate::testing::stub_host::StubServer;
use crate::testing::stub_items::URIS;
use crate::testing::test_peer::{TestPeer, rights_to};

#[tokio::test]
async fn a_session_is_notified_of_each_changed_list() {
    for revision in Revision::ALL
        .into_iter()
        .filter(|revision| revision.features().sessions)
    {
        let mut peer = TestPeer::new(revision).await;
        peer.host.change_view(|view| view.prompts = 2);
        assert_eq!(
            peer.next_notification().await["method"],
            "notifications/prompts/list_changed"
        );
        // A change that is not visible to this caller, followed by one that is.
        peer.host.change_view(|_| {});
        peer.host.change_view(|view| view.resources = 2);
        assert_eq!(
            peer.next_notification().await["method"],
            "notifications/resources/list_changed"
        );
        peer.host
            .change_view(|view| (view.tools, view.resources) = (3, 3));
        let both = [
            peer.next_notification().await["method"].clone(),
            peer.next_notification().await["method"].clone(),
        ];
        assert_eq!(
            both,
            [
                "notifications/tools/list_changed",
                "notifications/resources/list_changed"
            ]
        );
    }
}

#[tokio::test]
async fn a_subscription_receives_the_requested_notifications() {
    let mut peer = TestPeer::new(Revision::NEWEST).await;
    let uris = ["test://a", "test://x", "test://b", "test://a"];
    let filter = json!({"promptsListChanged": true, "toolsListChanged": false, "resourceSubscriptions": uris});
    let id = peer
        .request("subscriptions/listen", json!({"notifications": filter}))
        .await;
    let acknowledged = peer.next_notification().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let honoured =
        json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a", "test://b"]});
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    // Changes of lists that the client did not request are not sent.
    peer.host
        .change_view(|view| (view.tools, view.resources) = (2, 2));
    peer.host.change_view(|view| view.prompts = 2);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed", "params": {"_meta": meta}});
    assert_eq!(peer.next_notification().await, changed);
    for uri in ["test://c/d", "test://x", "test://b"] {
        peer.host.updates().notify_changed(uri);
    }
    let params = json!({"_meta": meta, "uri": "test://b"});
    assert_eq!(
        peer.next_notification().await,
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
    );
    // After the cancellation, no subscriber is left.
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    while peer.host.updates().bytes_of("stdio") > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_the_honoured_part_of_a_filter_is_acknowledged() {
    for (rights, filter, honoured) in [
        (CallerRights::All, json!({}), json!({})),
        (
            CallerRights::All,
            json!({"resourceSubscriptions": []}),
            json!({}),
        ),
        (
            CallerRights::All,
            json!({"resourceSubscriptions": ["test://x"], "toolsListChanged": true}),
            json!({"toolsListChanged": true}),
        ),
        (
            rights_to("test://b"),
            json!({"resourceSubscriptions": URIS}),
            json!({"resourceSubscriptions": ["test://b"]}),
        ),
        (
            CallerRights::All,
            json!({"resourcesListChanged": true, "resourceSubscriptions": ["memo://1/x"]}),
            json!({"resourcesListChanged": true, "resourceSubscriptions": ["memo://1/x"]}),
        ),
    ] {
        let mut peer = TestPeer::with_rights(StubServer::new(), Revision::NEWEST, rights).await;
        peer.request("subscriptions/listen", json!({"notifications": filter}))
            .await;
        assert_eq!(
            peer.next_notification().await["params"]["notifications"],
            honoured,
            "{filter}"
        );
    }
}

#[tokio::test]
async fn a_session_is_notified_of_subscribed_resources() {
    for revision in Revision::ALL
        .into_iter()
        .filter(|revision| revision.features().sessions)
    {
        let mut peer = TestPeer::new(revision).await;
        for uri in ["test://a", "test://c", "memo://1/x"] {
            // Here, a folder is not a resource.
            let expected = uri != "test://c";
            assert_eq!(
                peer.request_response("resources/subscribe", json!({"uri": uri}))
                    .await
                    .get("result")
                    .is_some(),
                expected
            );
        }
        let host = Arc::clone(&peer.host);
        let updated = |uri: &str| json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
        for uri in ["test://b", "test://a", "memo://1/x"] {
            host.updates().notify_changed(uri);
        }
        assert_eq!(
            [
                peer.next_notification().await,
                peer.next_notification().await
            ],
            [updated("test://a"), updated("memo://1/x")]
        );
        assert_eq!(
            peer.result("resources/unsubscribe", json!({"uri": "test://a"}))
                .await,
            json!({})
        );
        assert_eq!(
            peer.result("resources/unsubscribe", json!({"uri": "test://never"}))
                .await,
            json!({})
        );
        host.updates().notify_changed("test://a");
        host.updates().notify_changed("memo://1/x");
        assert_eq!(peer.next_notification().await, updated("memo://1/x"));
        drop(peer);
    }
}

#[tokio::test]
async fn a_slow_client_gets_one_notification_for_many_changes() {
    let mut peer = TestPeer::new(Revision::NEWEST_SESSION).await;
    for uri in ["test://a", "test://b"] {
        peer.result("resources/subscribe", json!({"uri": uri}))
            .await;
    }
    // No message is read meanwhile: the notifying task does not run.
    for _ in 0..1000 {
        peer.host.updates().notify_changed("test://a");
    }
    peer.host.updates().notify_changed("test://b");
    let heard = [
        peer.next_notification().await,
        peer.next_notification().await,
    ];
    assert_eq!(
        heard.map(|told| told["params"]["uri"].clone()),
        ["test://a", "test://b"]
    );
}

#[tokio::test]
async fn ten_thousand_subscriptions_are_rejected_with_a_reason() {
    let mut peer = TestPeer::new(Revision::NEWEST_SESSION).await;
    let mut refused = Vec::new();
    for n in 0..10_000 {
        let response = peer
            .request_response(
                "resources/subscribe",
                json!({"uri": format!("memo://1/{n}")}),
            )
            .await;
        refused.extend(response.get("error").cloned());
    }
    assert_eq!(refused.len(), 10_000 - MAX_SUBSCRIPTIONS);
    assert_eq!(refused[0]["code"], -32600);
    assert_eq!(
        refused[0]["message"],
        "there are 256 subscriptions already, which is the maximum: unsubscribe from some first"
    );
    let many: Vec<_> = (0..10_000).map(|n| format!("memo://2/{n:05}")).collect();
    let mut stream =
        TestPeer::with_rights(Arc::clone(&peer.host), Revision::NEWEST, CallerRights::All).await;
    stream
        .request(
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": many}}),
        )
        .await;
    let honoured =
        stream.next_notification().await["params"]["notifications"]["resourceSubscriptions"]
            .clone();
    assert_eq!(honoured, json!(many[..MAX_SUBSCRIPTIONS]));
}
